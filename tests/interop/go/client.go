package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	watchedURI = "test://watched-resource"
	rootURI    = "file:///home/ada/project"
	sampled    = "Paris, of course."
)

// forms is the content that the user fills into any form.
var forms = map[string]any{
	"name": "Ada", "color": "green", "ok": true, "context": "tea", "username": "ada", "email": "ada@example.org",
	"age": 36, "score": 1.5, "status": "pending", "verified": false,
	"untitledSingle": "option2", "titledSingle": "value1", "legacyEnum": "opt2",
	"untitledMulti": []any{"option1", "option3"}, "titledMulti": []any{"value1", "value2"},
}

// hidden are the members of results that belong to the protocol and not to the content.
var hidden = []string{"_meta", "resultType", "ttlMs", "cacheScope", "task"}

type object = map[string]any

// player is a client with the requests and notifications that it has received.
type player struct {
	revision string
	client   *mcp.Client
	session  *mcp.ClientSession

	lock     sync.Mutex
	asked    []any
	logged   []any
	changed  []any
	progress func(*mcp.ProgressNotificationParams)
}

func newPlayer(revision string, byHand bool) *player {
	played := &player{revision: revision}
	changed := func(what string) {
		played.lock.Lock()
		defer played.lock.Unlock()
		played.changed = append(played.changed, what)
	}
	played.client = mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1"}, &mcp.ClientOptions{
		MultiRoundTrip:             &mcp.MultiRoundTripOptions{Disabled: byHand},
		CreateMessageHandler:       played.sample,
		ElicitationHandler:         played.elicit,
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { changed("tools") },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { changed("prompts") },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { changed("resources") },
		ResourceUpdatedHandler: func(_ context.Context, request *mcp.ResourceUpdatedNotificationRequest) {
			changed(request.Params.URI)
		},
		LoggingMessageHandler: func(_ context.Context, request *mcp.LoggingMessageRequest) {
			played.lock.Lock()
			defer played.lock.Unlock()
			params := request.Params
			played.logged = append(played.logged, []any{params.Level, params.Data, orNull(params.Logger)})
		},
		ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
			played.lock.Lock()
			defer played.lock.Unlock()
			if played.progress != nil {
				played.progress(request.Params)
			}
		},
	})
	played.client.AddRoots(&mcp.Root{URI: rootURI, Name: "project"})
	played.client.AddReceivingMiddleware(played.noteRoots)
	return played
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func (p *player) note(what any) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.asked = append(p.asked, what)
}

// taken returns what a list has received, and empties it.
func (p *player) taken(list *[]any) []any {
	p.lock.Lock()
	defer p.lock.Unlock()
	found := append([]any{}, *list...)
	*list = nil
	return found
}

// Answers

func (p *player) sample(_ context.Context, request *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	p.note(plain(request.Params))
	return &mcp.CreateMessageResult{Role: "assistant", Content: &mcp.TextContent{Text: sampled}, Model: "a-model"}, nil
}

func (p *player) elicit(_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	p.note(plain(request.Params))
	content := object{}
	for name := range request.Params.RequestedSchema.(object)["properties"].(object) {
		content[name] = forms[name]
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}, nil
}

func (p *player) noteRoots(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		if method == "roots/list" {
			p.note("roots")
		}
		return next(ctx, method, request)
	}
}

// Actions

func (p *player) isModern() bool { return p.revision == modern }

func (p *player) call(ctx context.Context, name string, arguments object, meta mcp.Meta) (*mcp.CallToolResult, error) {
	return p.session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments, Meta: meta})
}

func (p *player) text(ctx context.Context, name string, arguments object) (string, error) {
	result, err := p.call(ctx, name, arguments, nil)
	if err != nil {
		return "", err
	}
	return textOf(result), nil
}

func textOf(result *mcp.CallToolResult) string {
	var found strings.Builder
	for _, content := range result.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			found.WriteString(text.Text)
		}
	}
	return found.String()
}

func (p *player) read(ctx context.Context, uri string) (any, error) {
	result, err := p.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return nil, err
	}
	return plain(result).(object)["contents"], nil
}

// changedText calls a tool until its text differs from `before`, since notifications take time.
func (p *player) changedText(ctx context.Context, tool, before string) (string, error) {
	for range 100 {
		if now, err := p.text(ctx, tool, nil); err != nil || now != before {
			return now, err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return before, nil
}

// plain converts a value to JSON, without the members that belong to the protocol.
func plain(value any) any {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var found any
	if err := json.Unmarshal(data, &found); err != nil {
		panic(err)
	}
	return withoutHidden(found)
}

func withoutHidden(value any) any {
	switch value := value.(type) {
	case object:
		for name, member := range value {
			if slices.Contains(hidden, name) || isWrittenIfAbsent(name, member) {
				delete(value, name)
			} else {
				value[name] = withoutHidden(member)
			}
		}
	case []any:
		for n, item := range value {
			value[n] = withoutHidden(item)
		}
	}
	return value
}

// isWrittenIfAbsent reports members that the SDK writes even if the server did not send them.
func isWrittenIfAbsent(name string, value any) bool {
	return name == "idempotentHint" && value == false || name == "mode" && value == ""
}

// refused returns the error that the server responded with, or the result.
func refused(result any, err error) (any, error) {
	var found *jsonrpc.Error
	if errors.As(err, &found) {
		return object{"code": found.Code, "message": found.Message, "data": found.Data}, nil
	}
	if err != nil {
		return nil, err
	}
	return object{"answered": plain(result)}, nil
}

// The steps of the scenario

type step struct {
	name string
	play func(*player, context.Context) (any, error)
}

var steps = []step{
	{"lists", (*player).lists},
	{"calls", (*player).calls},
	{"reads", (*player).reads},
	{"prompts", (*player).prompts},
	{"completions", (*player).completions},
	{"progress", (*player).progressed},
	{"cancelling", (*player).cancelling},
	{"asking", (*player).asking},
	{"logging", (*player).logging},
	{"changes", (*player).changes},
	{"errors", (*player).errors},
}

func (p *player) lists(ctx context.Context) (any, error) {
	tools, first := p.session.ListTools(ctx, nil)
	resources, second := p.session.ListResources(ctx, nil)
	templates, third := p.session.ListResourceTemplates(ctx, nil)
	prompts, fourth := p.session.ListPrompts(ctx, nil)
	if err := errors.Join(first, second, third, fourth); err != nil {
		return nil, err
	}
	return plain(object{
		"tools": tools.Tools, "resources": resources.Resources, "templates": templates.ResourceTemplates,
		"prompts": prompts.Prompts,
	}), nil
}

func (p *player) calls(ctx context.Context) (any, error) {
	seen := object{}
	for _, name := range []string{
		"simple_text", "image_content", "audio_content", "embedded_resource", "multiple_content_types",
		"structured_content", "error_handling",
	} {
		result, err := p.call(ctx, "test_"+name, nil, nil)
		if err != nil {
			return nil, err
		}
		seen[name] = plain(result)
	}
	return seen, nil
}

func (p *player) reads(ctx context.Context) (any, error) {
	seen := object{}
	for _, uri := range []string{"test://static-text", "test://static-binary", "test://template/123/data"} {
		contents, err := p.read(ctx, uri)
		if err != nil {
			return nil, err
		}
		seen[uri] = contents
	}
	return seen, nil
}

func (p *player) prompts(ctx context.Context) (any, error) {
	seen := object{}
	for name, arguments := range map[string]map[string]string{
		"test_simple_prompt":                 nil,
		"test_prompt_with_arguments":         {"arg1": "hello", "arg2": "world"},
		"test_prompt_with_embedded_resource": {"resourceUri": "test://example"},
		"test_prompt_with_image":             nil,
		"test_input_required_result_prompt":  nil,
	} {
		result, err := p.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: arguments})
		answer, err := refused(result, err)
		if err != nil {
			return nil, err
		}
		if found, ok := answer.(object)["answered"]; ok {
			answer = found.(object)["messages"]
		}
		seen[name] = answer
	}
	return seen, nil
}

func (p *player) completions(ctx context.Context) (any, error) {
	complete := func(reference *mcp.CompleteReference, name, value string) (any, error) {
		argument := mcp.CompleteParamsArgument{Name: name, Value: value}
		result, err := p.session.Complete(ctx, &mcp.CompleteParams{Ref: reference, Argument: argument})
		if err != nil {
			return nil, err
		}
		found := plain(result.Completion).(object)
		found["hasMore"] = result.Completion.HasMore // which the SDK leaves out if it is false
		return found, nil
	}
	prompt, first := complete(&mcp.CompleteReference{Type: "ref/prompt", Name: "test_prompt_with_arguments"}, "arg1", "par")
	template, second := complete(&mcp.CompleteReference{Type: "ref/resource", URI: "test://template/{id}/data"}, "id", "12")
	return object{"prompt": prompt, "template": template}, errors.Join(first, second)
}

// callWithProgress calls a tool, and calls a function for each notification of progress.
func (p *player) callWithProgress(ctx context.Context, name string, hear func(*mcp.ProgressNotificationParams)) error {
	p.lock.Lock()
	p.progress = hear
	p.lock.Unlock()
	params := &mcp.CallToolParams{Name: name, Arguments: object{}}
	params.SetProgressToken("progress of " + name)
	_, err := p.session.CallTool(ctx, params)
	return err
}

func (p *player) progressed(ctx context.Context) (any, error) {
	seen := []any{}
	err := p.callWithProgress(ctx, "test_tool_with_progress", func(params *mcp.ProgressNotificationParams) {
		seen = append(seen, []any{params.Progress, params.Total, orNull(params.Message)})
	})
	return seen, err
}

func (p *player) cancelling(ctx context.Context) (any, error) {
	before, err := p.text(ctx, "test_cancelled_waits", nil)
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	p.callWithProgress(running, "test_wait", func(*mcp.ProgressNotificationParams) { cancel() })
	after, err := p.changedText(ctx, "test_cancelled_waits", before)
	return object{"before": before, "after": after}, err
}

func (p *player) asking(ctx context.Context) (any, error) {
	arguments := map[string]object{
		"test_sampling": {"prompt": "Say something"}, "test_elicitation": {"message": "Who are you?"},
	}
	seen := object{}
	for _, name := range []string{
		"test_sampling", "test_elicitation", "test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums",
		"test_input_required_result_elicitation", "test_input_required_result_sampling",
		"test_input_required_result_list_roots", "test_input_required_result_request_state",
		"test_input_required_result_multiple_inputs", "test_input_required_result_multi_round",
		"test_input_required_result_capabilities",
	} {
		p.taken(&p.asked)
		result, err := p.call(ctx, name, arguments[name], nil)
		answer, err := refused(result, err)
		found := object{"failed": fmt.Sprint(err)}
		if err == nil {
			found = answer.(object)
		}
		if _, ok := found["answered"]; ok {
			found = object{"text": textOf(result)}
		}
		found["asked"] = p.taken(&p.asked)
		seen[name] = found
	}
	return seen, nil
}

func (p *player) logging(ctx context.Context) (any, error) {
	seen := object{}
	for _, level := range []string{"debug", "info", "error"} {
		meta := mcp.Meta{}
		if p.isModern() {
			meta[mcp.MetaKeyLogLevel] = level
		} else if err := p.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(level)}); err != nil {
			return nil, err
		}
		p.taken(&p.logged)
		if _, err := p.call(ctx, "test_logging_tool", nil, meta); err != nil {
			return nil, err
		}
		time.Sleep(100 * time.Millisecond)
		seen[level] = p.taken(&p.logged)
	}
	return seen, nil
}

func (p *player) changes(ctx context.Context) (any, error) {
	before, err := p.read(ctx, watchedURI)
	if err != nil {
		return nil, err
	}
	if err := p.session.Subscribe(ctx, &mcp.SubscribeParams{URI: watchedURI}); err != nil {
		return nil, err
	}
	time.Sleep(100 * time.Millisecond)
	p.taken(&p.changed)
	for _, what := range []string{"tool", "prompt", "resource"} {
		if _, err := p.call(ctx, "test_trigger_"+what+"_change", nil, nil); err != nil {
			return nil, err
		}
		time.Sleep(50 * time.Millisecond) // lists and resources may have streams of their own
	}
	time.Sleep(200 * time.Millisecond) // enough for one too many to be heard as well
	heard := p.taken(&p.changed)
	if err := p.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: watchedURI}); err != nil {
		return nil, err
	}
	time.Sleep(100 * time.Millisecond)
	if _, err := p.call(ctx, "test_trigger_resource_change", nil, nil); err != nil {
		return nil, err
	}
	time.Sleep(200 * time.Millisecond)
	afterLeaving := p.taken(&p.changed)
	tools, err := p.session.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	late := []string{}
	for _, tool := range tools.Tools {
		if strings.Contains(tool.Name, "late") {
			late = append(late, tool.Name)
		}
	}
	after, err := p.read(ctx, watchedURI)
	if err != nil {
		return nil, err
	}
	texts := []any{}
	for _, contents := range append(before.([]any), after.([]any)...) {
		texts = append(texts, contents.(object)["text"])
	}
	return object{"heard": heard, "after_leaving": afterLeaving, "late": late, "watched": texts}, nil
}

type noParams struct{ mcp.ParamsBase }
type noResult struct{ mcp.ResultBase }

func (p *player) errors(ctx context.Context) (any, error) {
	seen := object{}
	attempts := map[string]func() (any, error){
		"tool":     func() (any, error) { return p.call(ctx, "no_such_tool", nil, nil) },
		"argument": func() (any, error) { return p.call(ctx, "test_sampling", nil, nil) },
		"prompt":   func() (any, error) { return p.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "no_such_prompt"}) },
		"resource": func() (any, error) { return p.read(ctx, "test://no-such-resource") },
		"method": func() (any, error) {
			return mcp.CallCustomMethod[*noParams, *noResult](ctx, p.session, "no/such/method", &noParams{})
		},
	}
	for name, attempt := range attempts {
		answer, err := refused(attempt())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		seen[name] = answer
	}
	return seen, nil
}

// byHand calls a tool and answers each round. It returns the requested keys, and the final text.
func (p *player) byHand(ctx context.Context, name string) (any, error) {
	seen := []any{}
	params := &mcp.CallToolParams{Name: name, Arguments: object{}}
	for {
		result, err := p.session.CallTool(ctx, params)
		if err != nil {
			return nil, err
		}
		if !result.NeedsInput() {
			return append(seen, textOf(result)), nil
		}
		keys, responses := []string{}, mcp.InputResponseMap{}
		for key, request := range result.InputRequests {
			keys = append(keys, key)
			answer, err := p.elicit(ctx, &mcp.ElicitRequest{Params: request.(*mcp.ElicitParams)})
			if err != nil {
				return nil, err
			}
			responses[key] = answer
		}
		slices.Sort(keys)
		seen = append(seen, keys)
		params = &mcp.CallToolParams{Name: name, Arguments: object{}, InputResponses: responses, RequestState: result.RequestState}
	}
}

// tampered returns the error for a modified request state.
func (p *player) tampered(ctx context.Context) (any, error) {
	const name = "test_input_required_result_tampered_state"
	result, err := p.call(ctx, name, nil, nil)
	if err != nil {
		return nil, err
	}
	altered := []byte(result.RequestState)
	if altered[0] == 'A' {
		altered[0] = 'B'
	} else {
		altered[0] = 'A'
	}
	return refused(p.session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: object{}, RequestState: string(altered)}))
}

// rounds makes the rounds one by one, if the revision has them.
func (p *player) rounds(ctx context.Context) (any, error) {
	if !p.isModern() {
		return nil, nil
	}
	one, first := p.byHand(ctx, "test_input_required_result_elicitation")
	two, second := p.byHand(ctx, "test_input_required_result_multi_round")
	three, third := p.tampered(ctx)
	return object{"one": one, "two": two, "tampered": three}, errors.Join(first, second, third)
}

// connect opens a session. The caller closes it.
func (p *player) connect(kind string, target []string) error {
	var transport mcp.Transport
	if kind == "stdio" {
		transport = &mcp.CommandTransport{Command: exec.Command(target[0], target[1:]...)}
	} else {
		transport = &mcp.StreamableClientTransport{Endpoint: target[0]}
	}
	if err := mcp.AddSendingCustomMethod[*noParams, *noResult](p.client, "no/such/method"); err != nil {
		return err
	}
	options := &mcp.ClientSessionOptions{ProtocolVersion: p.revision}
	session, err := p.client.Connect(context.Background(), transport, options)
	p.session = session
	return err
}

func playScenario(arguments []string) error {
	revision, kind, target := arguments[0], arguments[1], arguments[2:]
	played := newPlayer(revision, false)
	if err := played.connect(kind, target); err != nil {
		return err
	}
	about := played.session.InitializeResult()
	seen := object{
		"client": "go-sdk " + sdkVersion(),
		"about": object{
			"protocolVersion": about.ProtocolVersion, "serverInfo": plain(about.ServerInfo),
			"capabilities": plain(about.Capabilities), "instructions": about.Instructions,
		},
	}
	for _, step := range steps {
		seen[step.name] = played.try(step)
	}
	if err := played.session.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	other := newPlayer(revision, true)
	if err := other.connect(kind, target); err != nil {
		return err
	}
	seen["rounds"] = other.try(step{"rounds", (*player).rounds})
	if err := other.session.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(seen)
}

// try plays a step, and returns its observations or its failure.
func (p *player) try(step step) any {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	found, err := step.play(p, ctx)
	if err != nil {
		return object{"failed": err.Error()}
	}
	return found
}

func sdkVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "github.com/modelcontextprotocol/go-sdk" {
				return module.Version
			}
		}
	}
	return "?"
}
