//go:build tools

// Keeps in go.mod what is built from other people's modules.
package tools

import _ "github.com/envoyproxy/ratelimit/src/service_cmd"
