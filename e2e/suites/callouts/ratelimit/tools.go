//go:build tools

// Keeps the modules of the programs that ../build builds in go.mod.
package tools

import _ "github.com/envoyproxy/ratelimit/src/service_cmd"
