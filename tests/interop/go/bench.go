package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var echoed = strings.Repeat("x", 20)

// newEchoServer makes a server with tools on the SDK's lower level: arguments are not checked.
func newEchoServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{}})
	for _, name := range []string{"echo", "large", "wait", "report"} {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, echo)
	}
	return server
}

func echo(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var arguments struct {
		Text string
		Size int
	}
	if len(request.Params.Arguments) > 0 {
		if err := json.Unmarshal(request.Params.Arguments, &arguments); err != nil {
			return nil, err
		}
	}
	switch request.Params.Name {
	case "large":
		arguments.Text = strings.Repeat("x", arguments.Size)
	case "wait":
		<-ctx.Done()
		return nil, ctx.Err()
	case "report":
		token := request.Params.GetProgressToken()
		if err := request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1}); err != nil {
			return nil, err
		}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: arguments.Text}}}, nil
}

func serveEcho([]string) error {
	return newEchoServer().Run(context.Background(), &mcp.StdioTransport{MaxLineLength: 64 << 20})
}

// serveEchoOverHTTP answers with JSON as `app`, and with event streams as `streams`.
func serveEchoOverHTTP(arguments []string) error {
	isApp := arguments[0] == "app"
	return http.ListenAndServe("127.0.0.1:"+arguments[1], bothEras(newEchoServer(), isApp, isApp))
}

// callRepeatedly measures calls. It prints `ready`, reads lines with the number of concurrent calls, the seconds and
// the least number of calls, and prints the calls per second of each.
func callRepeatedly(arguments []string) error {
	target, revision, python := arguments[0], arguments[1], arguments[2]
	var transport mcp.Transport = &mcp.CommandTransport{Command: exec.Command(python, target)}
	if strings.HasPrefix(target, "http") {
		transport = &mcp.StreamableClientTransport{Endpoint: target}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		return err
	}
	defer session.Close()
	if agreed := session.InitializeResult().ProtocolVersion; agreed != revision {
		return fmt.Errorf("expected %s, agreed on %s", revision, agreed)
	}
	if _, err := measure(session, 1, 0, 0); err != nil {
		return err
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var depth, least int
		var seconds float64
		if found, _ := fmt.Sscan(lines.Text(), &depth, &seconds, &least); found < 2 {
			return fmt.Errorf("expected a turn, got %q", lines.Text())
		}
		if _, err := measure(session, depth, seconds/5, 0); err != nil {
			return err
		}
		rate, err := measure(session, depth, seconds, least)
		if err != nil {
			return err
		}
		fmt.Println(rate)
	}
	return nil
}

// measure returns calls per second with `depth` concurrent calls.
func measure(session *mcp.ClientSession, depth int, seconds float64, least int) (float64, error) {
	counts, failures := make([]int, depth), make([]error, depth)
	start := time.Now()
	var group sync.WaitGroup
	for n := range depth {
		group.Go(func() {
			for ok := true; ok; ok = time.Since(start).Seconds() < seconds || counts[n]*depth < least {
				if failures[n] = callEcho(session); failures[n] != nil {
					return
				}
				counts[n]++
			}
		})
	}
	group.Wait()
	calls := 0
	for _, count := range counts {
		calls += count
	}
	return float64(calls) / time.Since(start).Seconds(), errors.Join(failures...)
}

func callEcho(session *mcp.ClientSession) error {
	params := &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": echoed}}
	result, err := session.CallTool(context.Background(), params)
	if err != nil {
		return err
	}
	if text, ok := result.Content[0].(*mcp.TextContent); !ok || text.Text != echoed {
		return fmt.Errorf("the response is not an echo: %v", result.Content)
	}
	return nil
}
