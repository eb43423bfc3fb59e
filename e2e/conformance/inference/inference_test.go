// Package inference compiles the official suite of the Gateway API Inference Extension into one test binary; ./run builds and runs it.
package inference

import (
	"testing"

	"sigs.k8s.io/gateway-api-inference-extension/conformance"
)

// TestConformance reads its settings from command-line flags: GatewayClass, report.
func TestConformance(t *testing.T) {
	conformance.RunConformance(t)
}
