//go:build tools

// Keeps the module of the program that ./build builds in go.mod.
package tools

import _ "github.com/summerwind/h2spec/cmd/h2spec"
