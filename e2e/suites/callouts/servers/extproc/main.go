// An ext_proc server. The request header x-do selects its actions, as a list of words:
//
//	header     sets x-from-processor, appends to x-list, removes x-secret; on responses sets x-response-from-processor
//	pseudo     sets :path to /moved and the host to moved.example
//	upper      converts bodies to upper case
//	clear      removes bodies
//	deny       sends an immediate response to the request headers; deny-body to the request body; deny-response to the response headers
//	trailers   sets a trailer, in both directions
//	metadata   returns dynamic metadata with the attributes it received
//	skip-body  requests by mode override not to receive the response body
//	hang       never responds
//	broken     ends the stream with an error
//
// Prints its port.
package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	proc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	types "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

type server struct {
	proc.UnimplementedExternalProcessorServer
}

// One stream: one request and its response.
type session struct {
	words    []string
	streamed map[bool]bool
}

func (s *session) has(word string) bool { return slices.Contains(s.words, word) }

func (server) Process(stream proc.ExternalProcessor_ProcessServer) error {
	s := &session{streamed: map[bool]bool{}}
	for {
		request, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if config := request.GetProtocolConfig(); config != nil {
			s.streamed[false] = config.RequestBodyMode == filter.ProcessingMode_FULL_DUPLEX_STREAMED
			s.streamed[true] = config.ResponseBodyMode == filter.ProcessingMode_FULL_DUPLEX_STREAMED
		}
		response, err := s.answer(request)
		if err != nil {
			return err
		}
		if response == nil {
			continue
		}
		if err := stream.Send(response); err != nil {
			return err
		}
	}
}

func (s *session) answer(request *proc.ProcessingRequest) (*proc.ProcessingResponse, error) {
	switch message := request.Request.(type) {
	case *proc.ProcessingRequest_RequestHeaders:
		return s.requestHeaders(request, message.RequestHeaders)
	case *proc.ProcessingRequest_ResponseHeaders:
		if s.has("deny-response") {
			return immediate(451, "the answer is withheld"), nil
		}
		common := &proc.CommonResponse{}
		if s.has("header") {
			common.HeaderMutation = &proc.HeaderMutation{SetHeaders: []*core.HeaderValueOption{set("x-response-from-processor", "status "+valueOf(message.ResponseHeaders, ":status"))}}
		}
		response := &proc.ProcessingResponse{Response: &proc.ProcessingResponse_ResponseHeaders{ResponseHeaders: &proc.HeadersResponse{Response: common}}}
		if s.has("skip-body") {
			response.ModeOverride = &filter.ProcessingMode{ResponseBodyMode: filter.ProcessingMode_NONE, ResponseTrailerMode: filter.ProcessingMode_SKIP}
		}
		return response, nil
	case *proc.ProcessingRequest_RequestBody:
		if s.has("deny-body") {
			return immediate(422, "the body is not wanted"), nil
		}
		return &proc.ProcessingResponse{Response: &proc.ProcessingResponse_RequestBody{RequestBody: s.body(message.RequestBody, false)}}, nil
	case *proc.ProcessingRequest_ResponseBody:
		return &proc.ProcessingResponse{Response: &proc.ProcessingResponse_ResponseBody{ResponseBody: s.body(message.ResponseBody, true)}}, nil
	case *proc.ProcessingRequest_RequestTrailers:
		return &proc.ProcessingResponse{Response: &proc.ProcessingResponse_RequestTrailers{RequestTrailers: s.trailers()}}, nil
	case *proc.ProcessingRequest_ResponseTrailers:
		return &proc.ProcessingResponse{Response: &proc.ProcessingResponse_ResponseTrailers{ResponseTrailers: s.trailers()}}, nil
	}
	return nil, status.Error(codes.InvalidArgument, "no message that is known")
}

func (s *session) requestHeaders(request *proc.ProcessingRequest, headers *proc.HttpHeaders) (*proc.ProcessingResponse, error) {
	s.words = strings.Fields(valueOf(headers, "x-do"))
	if s.has("hang") {
		return nil, nil
	}
	if s.has("broken") {
		return nil, status.Error(codes.Internal, "broken on purpose")
	}
	if s.has("deny") {
		return immediate(403, "not with "+valueOf(headers, ":path")), nil
	}
	mutation := &proc.HeaderMutation{}
	if s.has("header") {
		mutation.RemoveHeaders = []string{"x-secret"}
		mutation.SetHeaders = append(mutation.SetHeaders, set("x-from-processor", valueOf(headers, ":method")+" "+valueOf(headers, ":authority")),
			&core.HeaderValueOption{Header: &core.HeaderValue{Key: "x-list", RawValue: []byte("second")}, AppendAction: core.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD})
	}
	if s.has("pseudo") {
		mutation.SetHeaders = append(mutation.SetHeaders, set(":path", "/moved"), set("host", "moved.example"))
	}
	response := &proc.ProcessingResponse{Response: &proc.ProcessingResponse_RequestHeaders{
		RequestHeaders: &proc.HeadersResponse{Response: &proc.CommonResponse{HeaderMutation: mutation}},
	}}
	if s.has("metadata") {
		received := map[string]any{"end": headers.EndOfStream}
		for name, value := range request.GetMetadataContext().GetFilterMetadata() {
			received[name] = value.AsMap()
		}
		for name, value := range request.GetAttributes() {
			received[name] = value.AsMap()
		}
		metadata, err := structpb.NewStruct(received)
		if err != nil {
			return nil, err
		}
		response.DynamicMetadata = metadata
	}
	return response, nil
}

func (s *session) body(body *proc.HttpBody, isResponse bool) *proc.BodyResponse {
	content := body.Body
	isChanged := false
	if s.has("upper") {
		content, isChanged = bytes.ToUpper(content), true
	}
	common := &proc.CommonResponse{}
	switch {
	case s.streamed[isResponse]:
		if s.has("clear") {
			content = nil
		}
		common.BodyMutation = &proc.BodyMutation{Mutation: &proc.BodyMutation_StreamedResponse{
			StreamedResponse: &proc.StreamedBodyResponse{Body: content, EndOfStream: body.EndOfStream},
		}}
	case s.has("clear"):
		common.BodyMutation = &proc.BodyMutation{Mutation: &proc.BodyMutation_ClearBody{ClearBody: true}}
	case isChanged:
		common.BodyMutation = &proc.BodyMutation{Mutation: &proc.BodyMutation_Body{Body: content}}
	}
	return &proc.BodyResponse{Response: common}
}

func (s *session) trailers() *proc.TrailersResponse {
	if !s.has("trailers") {
		return &proc.TrailersResponse{}
	}
	return &proc.TrailersResponse{HeaderMutation: &proc.HeaderMutation{SetHeaders: []*core.HeaderValueOption{set("x-trailer-from-processor", "yes")}}}
}

func immediate(code int32, text string) *proc.ProcessingResponse {
	return &proc.ProcessingResponse{Response: &proc.ProcessingResponse_ImmediateResponse{ImmediateResponse: &proc.ImmediateResponse{
		Status: &types.HttpStatus{Code: types.StatusCode(code)}, Body: []byte(text),
		Headers: &proc.HeaderMutation{SetHeaders: []*core.HeaderValueOption{set("x-denied-by", "processor")}},
	}}}
}

func set(name, value string) *core.HeaderValueOption {
	return &core.HeaderValueOption{
		Header: &core.HeaderValue{Key: name, RawValue: []byte(value)}, AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}

func valueOf(headers *proc.HttpHeaders, name string) string {
	for _, header := range headers.GetHeaders().GetHeaders() {
		if header.Key != name {
			continue
		}
		if header.Value != "" {
			return header.Value
		}
		return string(header.RawValue)
	}
	return ""
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	grpcServer := grpc.NewServer()
	proc.RegisterExternalProcessorServer(grpcServer, server{})
	fmt.Printf("listening %d\n", listener.Addr().(*net.TCPAddr).Port)
	if err := grpcServer.Serve(listener); err != nil {
		log.Fatal(err)
	}
}
