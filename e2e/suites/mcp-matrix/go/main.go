// The Go SDK in the matrix (../matrix.e2e.ts).
//
//	matrix server PORT
//	matrix client VERSION '{"backend": {"url": ..., "prefixes": [...]}}'
//
// The client prints the results of the features by backend as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Limit of one feature.
const timeout = 30 * time.Second

func main() {
	if len(os.Args) == 3 && os.Args[1] == "server" {
		log.Fatal(serve("127.0.0.1:" + os.Args[2]))
	}
	if len(os.Args) == 2 && os.Args[1] == "stdio" {
		log.Fatal(newServer().Run(context.Background(), &mcp.StdioTransport{}))
	}
	if len(os.Args) != 4 || os.Args[1] != "client" {
		log.Fatal("usage: matrix server PORT, matrix stdio, or matrix client VERSION BACKENDS")
	}
	if err := tryAll(os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

type numbers struct {
	A int `json:"a"`
	B int `json:"b"`
}

type limit struct {
	To int `json:"to"`
}

func text(value string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: value}}}
}

func serve(address string) error {
	server := newServer()
	return http.ListenAndServe(address, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
}

func newServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "go", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "add"}, func(_ context.Context, _ *mcp.CallToolRequest, in numbers) (*mcp.CallToolResult, any, error) {
		return text(fmt.Sprint(in.A + in.B)), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "count"}, func(ctx context.Context, request *mcp.CallToolRequest, in limit) (*mcp.CallToolResult, any, error) {
		token := request.Params.GetProgressToken()
		for done := 1; done <= in.To && token != nil; done++ {
			if err := request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(done)}); err != nil {
				return nil, nil, err
			}
		}
		return text(fmt.Sprintf("counted to %d", in.To)), nil, nil
	})
	// Without a schema of its own: results that ask for input have no output.
	server.AddTool(&mcp.Tool{Name: "who", InputSchema: &jsonschema.Schema{Type: "object"}}, who)
	server.AddPrompt(&mcp.Prompt{Name: "ask", Arguments: []*mcp.PromptArgument{{Name: "topic"}}}, func(_ context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		question := &mcp.TextContent{Text: "What is " + request.Params.Arguments["topic"] + "?"}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: question}}}, nil
	})
	server.AddResource(&mcp.Resource{Name: "note", URI: "note://x"}, func(_ context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: request.Params.URI, Text: "note x"}}}, nil
	})
	return server
}

// Asks the user for a name. For clients without multi round-trip requests, the SDK sends the elicitation itself.
func who(_ context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	response, isAnswered := request.Params.InputResponses["who"].(*mcp.ElicitResult)
	if !isAnswered {
		schema := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"name": {Type: "string"}}, Required: []string{"name"}}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"who": &mcp.ElicitParams{Message: "Who?", RequestedSchema: schema}}}, nil
	}
	content, err := json.Marshal(response.Content)
	return text(string(content)), err
}

type backend struct {
	URL      string   `json:"url"`
	Prefixes []string `json:"prefixes"`
}

func tryAll(version, argument string) error {
	backends := map[string]backend{}
	if err := json.Unmarshal([]byte(argument), &backends); err != nil {
		return err
	}
	results := map[string]map[string]any{}
	for name, one := range backends {
		result, err := tryFeatures(version, one)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		results[name] = result
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

type session struct {
	*mcp.ClientSession
	progress chan float64
}

func tryFeatures(version string, target backend) (map[string]any, error) {
	progress := make(chan float64, 16)
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "me"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
			progress <- request.Params.Progress
		},
	})
	ctx := context.Background()
	connected, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: target.URL}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, err
	}
	defer connected.Close()
	prefixes := target.Prefixes
	names, uris := []string{""}, []string{""}
	if len(prefixes) > 0 {
		names, uris = nil, nil
		for _, prefix := range prefixes {
			names, uris = append(names, prefix+"_"), append(uris, prefix+"+")
		}
	}
	results := map[string]any{}
	for feature, try := range features {
		results[feature] = true
		used := names
		if feature == "resources" {
			used = uris
		}
		for _, prefix := range used {
			limited, cancel := context.WithTimeout(ctx, timeout)
			if err := try(limited, session{connected, progress}, prefix); err != nil {
				results[feature] = prefix + ": " + err.Error()
			}
			cancel()
		}
	}
	return results, nil
}

var features = map[string]func(context.Context, session, string) error{
	"tools": func(ctx context.Context, s session, prefix string) error {
		listed, err := s.ListTools(ctx, nil)
		if err != nil {
			return err
		}
		isListed := false
		for _, tool := range listed.Tools {
			isListed = isListed || tool.Name == prefix+"add"
		}
		if !isListed {
			return errors.New("add is not listed")
		}
		return s.expect(ctx, prefix+"add", map[string]any{"a": 2, "b": 3}, nil, "5")
	},
	"progress": func(ctx context.Context, s session, prefix string) error {
		if err := s.expect(ctx, prefix+"count", map[string]any{"to": 3}, "p"+prefix, "counted to 3"); err != nil {
			return err
		}
		for expected := 1.0; expected <= 3; expected++ {
			select {
			case seen := <-s.progress:
				if seen != expected {
					return fmt.Errorf("progress %v in place of %v", seen, expected)
				}
			case <-ctx.Done():
				return fmt.Errorf("no progress %v", expected)
			}
		}
		return nil
	},
	"elicitation": func(ctx context.Context, s session, prefix string) error {
		return s.expect(ctx, prefix+"who", map[string]any{}, nil, `{"name":"me"}`)
	},
	"prompts": func(ctx context.Context, s session, prefix string) error {
		prompt, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: prefix + "ask", Arguments: map[string]string{"topic": "life"}})
		if err != nil {
			return err
		}
		content, _ := prompt.Messages[0].Content.(*mcp.TextContent)
		if content == nil || content.Text != "What is life?" {
			return errors.New("another prompt")
		}
		return nil
	},
	"resources": func(ctx context.Context, s session, prefix string) error {
		read, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: prefix + "note://x"})
		if err != nil {
			return err
		}
		if len(read.Contents) != 1 || read.Contents[0].Text != "note x" {
			return errors.New("another resource")
		}
		return nil
	},
}

// Calls a tool. Texts that are JSON are compared without spaces.
func (s session) expect(ctx context.Context, name string, arguments map[string]any, token any, expected string) error {
	params := &mcp.CallToolParams{Name: name, Arguments: arguments}
	if token != nil {
		params.SetProgressToken(token)
	}
	result, err := s.CallTool(ctx, params)
	if err != nil {
		return err
	}
	if len(result.Content) == 0 {
		return errors.New("no content")
	}
	content, _ := result.Content[0].(*mcp.TextContent)
	if content == nil {
		return errors.New("no text")
	}
	var value any
	found := content.Text
	if json.Unmarshal([]byte(found), &value) == nil {
		compact, _ := json.Marshal(value)
		found = string(compact)
	}
	if found != expected {
		return fmt.Errorf("%q in place of %q", found, expected)
	}
	return nil
}
