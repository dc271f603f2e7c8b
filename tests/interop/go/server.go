package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const modern = "2026-07-28"

// offer is the content of `offer.json`.
type offer struct {
	Info         *mcp.Implementation
	Instructions string
	Page         int
	Tools        []*mcp.Tool
	Results      map[string]*mcp.CallToolResult
	Questions    map[string][]mcp.InputRequestMap
	Resources    []*mcp.Resource
	Contents     map[string][]*mcp.ResourceContents
	Templates    []*mcp.ResourceTemplate
	Prompts      []*mcp.Prompt
	Messages     map[string][]*mcp.PromptMessage
	Styles       []string
	Levels       []mcp.LoggingLevel
}

// offerServer is a server with its state, which all sessions share.
type offerServer struct {
	offer
	server       *mcp.Server
	cancelled    atomic.Int64
	rootsChanges atomic.Int64
	watched      atomic.Int64
}

func serveOffer(arguments []string) error {
	data, err := os.ReadFile(arguments[0])
	if err != nil {
		return err
	}
	// The SDK cannot decode a request for roots without parameters, which the schema permits.
	data = bytes.ReplaceAll(data, []byte(`"method": "roots/list"`), []byte(`"method": "roots/list", "params": {}`))
	var content offer
	if err := json.Unmarshal(data, &content); err != nil {
		return err
	}
	server := newOfferServer(content)
	if len(arguments) > 1 && arguments[1] == "http" {
		return serveOverHTTP(server.server)
	}
	return server.server.Run(context.Background(), &mcp.StdioTransport{})
}

// serveOverHTTP prints the URL of the server, and ends with its standard input.
func serveOverHTTP(server *mcp.Server) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go http.Serve(listener, bothEras(server, false, false))
	fmt.Printf("http://%s/mcp\n", listener.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// bothEras serves the newest revision without sessions, and the others with sessions, as the SDK requires.
func bothEras(server *mcp.Server, sessionsWithJSON, callsWithJSON bool) http.Handler {
	same := func(*http.Request) *mcp.Server { return server }
	options := mcp.StreamableHTTPOptions{MaxRequestBodyBytes: 64 << 20, JSONResponse: sessionsWithJSON}
	withSessions := mcp.NewStreamableHTTPHandler(same, &options)
	options.Stateless, options.JSONResponse, options.PropagateRequestCancellation = true, callsWithJSON, true
	stateless := mcp.NewStreamableHTTPHandler(same, &options)
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Mcp-Protocol-Version") == modern {
			stateless.ServeHTTP(writer, request)
		} else {
			withSessions.ServeHTTP(writer, request)
		}
	})
}

func newOfferServer(content offer) *offerServer {
	offered := &offerServer{offer: content}
	nothing := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	offered.server = mcp.NewServer(content.Info, &mcp.ServerOptions{
		Instructions:            content.Instructions,
		PageSize:                content.Page,
		CompletionHandler:       offered.complete,
		SubscribeHandler:        nothing,
		UnsubscribeHandler:      func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		RootsListChangedHandler: func(context.Context, *mcp.RootsListChangedRequest) { offered.rootsChanges.Add(1) },
	})
	for _, tool := range content.Tools {
		offered.server.AddTool(tool, offered.call)
	}
	for _, resource := range content.Resources {
		offered.server.AddResource(resource, offered.read)
	}
	for _, template := range content.Templates {
		offered.server.AddResourceTemplate(template, offered.read)
	}
	for _, prompt := range content.Prompts {
		offered.server.AddPrompt(prompt, offered.prompt)
	}
	return offered
}

func (s *offerServer) call(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	params := request.Params
	if result, ok := s.Results[params.Name]; ok {
		copied := *result
		return &copied, nil
	}
	if rounds, ok := s.Questions[params.Name]; ok {
		answers, open, state, err := ask(ctx, request.Session, request.ProtocolVersion(), rounds, params.InputResponses, params.RequestState)
		if err != nil {
			return nil, err
		}
		if open != nil {
			return &mcp.CallToolResult{InputRequests: open, RequestState: state}, nil
		}
		return value(answers), nil
	}
	var arguments struct {
		Value any
		What  string
	}
	if len(params.Arguments) > 0 {
		if err := json.Unmarshal(params.Arguments, &arguments); err != nil {
			return nil, err
		}
	}
	switch params.Name {
	case "echo":
		return value(arguments.Value), nil
	case "progress":
		for done := 1.0; done <= 5; done++ {
			progress(ctx, request, done, 5, fmt.Sprintf("step %v", done))
		}
		return value("done"), nil
	case "wait":
		progress(ctx, request, 0, 1, "waiting")
		<-ctx.Done()
		s.cancelled.Add(1)
		return nil, ctx.Err()
	case "cancelled":
		return value(s.cancelled.Load()), nil
	case "log":
		for _, level := range s.Levels {
			message := &mcp.LoggingMessageParams{Level: level, Data: map[string]any{"level": level}, Logger: "offer"}
			if err := request.Session.Log(ctx, message); err != nil {
				return nil, err
			}
		}
		return value("logged"), nil
	case "change":
		return value("changed"), s.change(ctx, arguments.What)
	case "roots_changes":
		return value(s.rootsChanges.Load()), nil
	case "broken":
		return nil, &jsonrpc.Error{Code: -31999, Message: "I'm a teapot", Data: json.RawMessage(`{"short":true,"stout":[1,null]}`)}
	case "crash":
		os.Exit(3)
	}
	return nil, fmt.Errorf("no such tool: %s", params.Name)
}

func value(value any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: map[string]any{"value": value}}
}

func progress(ctx context.Context, request *mcp.CallToolRequest, done, total float64, message string) {
	if token := request.Params.GetProgressToken(); token != nil {
		request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: done, Total: total, Message: message,
		})
	}
}

// change adds something again, whereupon the SDK announces that the list has changed.
func (s *offerServer) change(ctx context.Context, what string) error {
	switch what {
	case "tools":
		s.server.AddTool(s.Tools[0], s.call)
	case "prompts":
		s.server.AddPrompt(s.Prompts[0], s.prompt)
	case "resources":
		s.server.AddResource(s.Resources[0], s.read)
	default:
		if what == "test://watched" {
			s.watched.Add(1)
		}
		return s.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: what})
	}
	return nil
}

// ask returns the answers by key, or the requests of the next round with the state to send with them.
func ask(
	ctx context.Context, session *mcp.ServerSession, revision string, rounds []mcp.InputRequestMap,
	responses mcp.InputResponseMap, state string,
) (map[string]any, mcp.InputRequestMap, string, error) {
	answers := map[string]any{}
	if revision < modern {
		for _, round := range rounds {
			for key, question := range round {
				answer, err := askInSession(ctx, session, question)
				if err != nil {
					return nil, nil, "", err
				}
				answers[key] = answer
			}
		}
		return answers, nil, "", nil
	}
	if state != "" {
		if err := json.Unmarshal([]byte(state), &answers); err != nil {
			return nil, nil, "", err
		}
	}
	for key, response := range responses {
		answers[key] = response
	}
	for _, round := range rounds {
		for key := range round {
			if _, ok := answers[key]; !ok {
				text, err := json.Marshal(answers)
				return nil, maps.Clone(round), string(text), err
			}
		}
	}
	return answers, nil, "", nil
}

// askInSession sends a request to the client, as older revisions do.
func askInSession(ctx context.Context, session *mcp.ServerSession, question mcp.InputRequest) (any, error) {
	switch params := question.(type) {
	case *mcp.ElicitParams:
		asked := *params
		if asked.Mode == "url" {
			asked.ElicitationID = "visit-1"
		}
		return session.Elicit(ctx, &asked)
	case *mcp.CreateMessageWithToolsParams:
		return session.CreateMessageWithTools(ctx, params)
	case *mcp.ListRootsParams:
		return session.ListRoots(ctx, params)
	}
	return nil, fmt.Errorf("no such request: %T", question)
}

func (s *offerServer) read(ctx context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	params := request.Params
	one := func(mimeType, text string) *mcp.ReadResourceResult {
		contents := &mcp.ResourceContents{URI: params.URI, MIMEType: mimeType, Text: text}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}
	}
	if id, ok := strings.CutPrefix(params.URI, "test://item/"); ok {
		return one("text/plain", "item "+id), nil
	}
	switch params.URI {
	case "test://watched":
		return one("text/plain", fmt.Sprintf("changed %d time(s)", s.watched.Load())), nil
	case "test://asked":
		answers, open, state, err := ask(ctx, request.Session, request.ProtocolVersion(), s.Questions["roots"], params.InputResponses, params.RequestState)
		if err != nil {
			return nil, err
		}
		if open != nil {
			return &mcp.ReadResourceResult{InputRequests: open, RequestState: state}, nil
		}
		return one("", answers["folders"].(*mcp.ListRootsResult).Roots[0].URI), nil
	}
	contents, ok := s.Contents[params.URI]
	if !ok {
		return nil, mcp.ResourceNotFoundError(params.URI)
	}
	return &mcp.ReadResourceResult{Contents: contents}, nil
}

func (s *offerServer) prompt(ctx context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	params := request.Params
	say := func(text string) []*mcp.PromptMessage {
		return []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}
	}
	switch params.Name {
	case "greet":
		style, ok := params.Arguments["style"]
		if !ok {
			style = "plainly"
		}
		text := fmt.Sprintf("Hello %s, %s.", params.Arguments["name"], style)
		return &mcp.GetPromptResult{Description: "Greets somebody.", Messages: say(text)}, nil
	case "asked":
		answers, open, state, err := ask(ctx, request.Session, request.ProtocolVersion(), s.Questions["rounds"], params.InputResponses, params.RequestState)
		if err != nil {
			return nil, err
		}
		if open != nil {
			return &mcp.GetPromptResult{InputRequests: open, RequestState: state}, nil
		}
		return &mcp.GetPromptResult{Messages: say(fmt.Sprintf("I like %v.", answers["second"].(*mcp.ElicitResult).Content["color"]))}, nil
	}
	return &mcp.GetPromptResult{Messages: s.Messages[params.Name]}, nil
}

func (s *offerServer) complete(_ context.Context, request *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	params := request.Params
	found := mcp.CompletionResultDetails{Values: []string{}}
	if params.Ref.Type == "ref/prompt" {
		for _, style := range s.Styles {
			if strings.HasPrefix(style, params.Argument.Value) {
				found.Values = append(found.Values, style)
			}
		}
		found.Total = len(found.Values)
		return &mcp.CompleteResult{Completion: found}, nil
	}
	start := ""
	if params.Context != nil {
		start = params.Context.Arguments["prefix"]
	}
	for n := range 100 {
		found.Values = append(found.Values, fmt.Sprintf("%s%s%d", start, params.Argument.Value, n))
	}
	found.Total, found.HasMore = 150, true
	return &mcp.CompleteResult{Completion: found}, nil
}
