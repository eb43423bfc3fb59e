// An ext_authz server that decides with a Rego policy and OPA's library: authz POLICY.rego
// The policy's data.authz.decision is evaluated with the CheckRequest as JSON and returns
// {allow, status, body, headers, remove, response_headers, query, unquery, metadata}. Prints its port.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	types "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/open-policy-agent/opa/v1/rego"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

type decision struct {
	Allow           bool              `json:"allow"`
	Status          int32             `json:"status"`
	Body            string            `json:"body"`
	Headers         map[string]string `json:"headers"`
	Remove          []string          `json:"remove"`
	ResponseHeaders map[string]string `json:"response_headers"`
	Query           map[string]string `json:"query"`
	Unquery         []string          `json:"unquery"`
	Metadata        map[string]any    `json:"metadata"`
}

type server struct {
	auth.UnimplementedAuthorizationServer
	query rego.PreparedEvalQuery
}

func (s *server) Check(ctx context.Context, request *auth.CheckRequest) (*auth.CheckResponse, error) {
	decided, err := s.decide(ctx, request)
	if err != nil {
		return nil, err
	}
	metadata, err := structpb.NewStruct(decided.Metadata)
	if err != nil {
		return nil, err
	}
	if !decided.Allow {
		return &auth.CheckResponse{
			Status:          &status.Status{Code: int32(codes.PermissionDenied)},
			DynamicMetadata: metadata,
			HttpResponse: &auth.CheckResponse_DeniedResponse{DeniedResponse: &auth.DeniedHttpResponse{
				Status: &types.HttpStatus{Code: types.StatusCode(decided.Status)}, Headers: options(decided.Headers), Body: decided.Body,
			}},
		}, nil
	}
	return &auth.CheckResponse{
		Status:          &status.Status{Code: int32(codes.OK)},
		DynamicMetadata: metadata,
		HttpResponse: &auth.CheckResponse_OkResponse{OkResponse: &auth.OkHttpResponse{
			Headers: options(decided.Headers), HeadersToRemove: decided.Remove, ResponseHeadersToAdd: options(decided.ResponseHeaders),
			QueryParametersToSet: parameters(decided.Query), QueryParametersToRemove: decided.Unquery,
		}},
	}, nil
}

func (s *server) decide(ctx context.Context, request *auth.CheckRequest) (*decision, error) {
	text, err := protojson.Marshal(request)
	if err != nil {
		return nil, err
	}
	var input any
	if err := json.Unmarshal(text, &input); err != nil {
		return nil, err
	}
	results, err := s.query.Eval(ctx, rego.EvalInput(input))
	if err != nil {
		return nil, err
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("the policy decides nothing")
	}
	value, err := json.Marshal(results[0].Expressions[0].Value)
	if err != nil {
		return nil, err
	}
	decided := &decision{}
	return decided, json.Unmarshal(value, decided)
}

func options(values map[string]string) []*core.HeaderValueOption {
	var list []*core.HeaderValueOption
	for name, value := range values {
		list = append(list, &core.HeaderValueOption{
			Header: &core.HeaderValue{Key: name, Value: value}, AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		})
	}
	return list
}

func parameters(values map[string]string) []*core.QueryParameter {
	var list []*core.QueryParameter
	for name, value := range values {
		list = append(list, &core.QueryParameter{Key: name, Value: value})
	}
	return list
}

func main() {
	policy, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	query, err := rego.New(rego.Query("data.authz.decision"), rego.Module("policy.rego", string(policy))).PrepareForEval(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	grpcServer := grpc.NewServer()
	auth.RegisterAuthorizationServer(grpcServer, &server{query: query})
	fmt.Printf("listening %d\n", listener.Addr().(*net.TCPAddr).Port)
	if err := grpcServer.Serve(listener); err != nil {
		log.Fatal(err)
	}
}
