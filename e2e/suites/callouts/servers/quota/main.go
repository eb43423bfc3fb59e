// A rate limit quota server (envoy.service.rate_limit_quota.v3): 600 requests an hour for each bucket, divided evenly
// among the streams that have reported it. Each change is pushed to all of them. A bucket with the value
//
//	blocked    is denied
//	fleeting   is assigned for one second
//	forgotten  is abandoned after its first assignment
//
// The argument is its port; 0: a free one. Prints its port, and a line for each report: report DOMAIN BUCKET allowed denied.
package main

import (
	"fmt"
	"log"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	quota "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	types "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

const total = 600

type stream struct {
	quota.RateLimitQuotaService_StreamRateLimitQuotasServer
	buckets map[string]*quota.BucketId
}

type server struct {
	quota.UnimplementedRateLimitQuotaServiceServer
	// Protects all fields, and sending.
	mutex   sync.Mutex
	streams map[*stream]bool
}

func (s *server) StreamRateLimitQuotas(call quota.RateLimitQuotaService_StreamRateLimitQuotasServer) error {
	own := &stream{call, map[string]*quota.BucketId{}}
	s.mutex.Lock()
	s.streams[own] = true
	s.mutex.Unlock()
	defer s.leave(own)
	domain := ""
	for {
		reports, err := call.Recv()
		if err != nil {
			return err
		}
		if domain == "" {
			domain = reports.GetDomain()
		}
		if err := reports.ValidateAll(); domain == "" || (err != nil && reports.GetDomain() != "") {
			return status.Errorf(codes.InvalidArgument, "invalid first report: %v", err)
		}
		if err := s.report(own, domain, reports.GetBucketQuotaUsages()); err != nil {
			return err
		}
	}
}

func (s *server) report(own *stream, domain string, usages []*quota.RateLimitQuotaUsageReports_BucketQuotaUsage) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, usage := range usages {
		if err := usage.ValidateAll(); err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		name := nameOf(usage.GetBucketId())
		fmt.Println("report", domain, name, usage.GetNumRequestsAllowed(), usage.GetNumRequestsDenied())
		if own.buckets[name] == nil {
			own.buckets[name] = usage.GetBucketId()
			s.push(name)
			if strings.HasSuffix(name, "forgotten") {
				delete(own.buckets, name)
				own.send(&quota.RateLimitQuotaResponse_BucketAction{
					BucketId:     usage.GetBucketId(),
					BucketAction: &quota.RateLimitQuotaResponse_BucketAction_AbandonAction_{AbandonAction: &quota.RateLimitQuotaResponse_BucketAction_AbandonAction{}},
				})
			}
		}
	}
	return nil
}

func (s *server) leave(own *stream) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.streams, own)
	for name := range own.buckets {
		s.push(name)
	}
}

// Assigns a bucket to all streams that have it.
func (s *server) push(name string) {
	holders := []*stream{}
	for each := range s.streams {
		if each.buckets[name] != nil {
			holders = append(holders, each)
		}
	}
	for _, each := range holders {
		assignment := &quota.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction{RateLimitStrategy: strategyOf(name, len(holders))}
		if strings.HasSuffix(name, "fleeting") {
			assignment.AssignmentTimeToLive = durationpb.New(time.Second)
		}
		each.send(&quota.RateLimitQuotaResponse_BucketAction{
			BucketId:     each.buckets[name],
			BucketAction: &quota.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction_{QuotaAssignmentAction: assignment},
		})
	}
}

func (s *stream) send(action *quota.RateLimitQuotaResponse_BucketAction) {
	// The error of a stream that ended is that of its Recv, too.
	_ = s.Send(&quota.RateLimitQuotaResponse{BucketAction: []*quota.RateLimitQuotaResponse_BucketAction{action}})
}

func strategyOf(name string, holders int) *types.RateLimitStrategy {
	if strings.HasSuffix(name, "blocked") {
		return &types.RateLimitStrategy{Strategy: &types.RateLimitStrategy_BlanketRule_{BlanketRule: types.RateLimitStrategy_DENY_ALL}}
	}
	return &types.RateLimitStrategy{Strategy: &types.RateLimitStrategy_RequestsPerTimeUnit_{
		RequestsPerTimeUnit: &types.RateLimitStrategy_RequestsPerTimeUnit{RequestsPerTimeUnit: uint64(total / holders), TimeUnit: types.RateLimitUnit_HOUR},
	}}
}

// The values of an id in the order of their keys.
func nameOf(id *quota.BucketId) string {
	parts := []string{}
	for _, key := range slices.Sorted(maps.Keys(id.GetBucket())) {
		parts = append(parts, key+"="+id.GetBucket()[key])
	}
	return strings.Join(parts, ",")
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	s := grpc.NewServer()
	quota.RegisterRateLimitQuotaServiceServer(s, &server{streams: map[*stream]bool{}})
	fmt.Println("listening", listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(s.Serve(listener))
}
