// The official Go SDKs of the providers, at the versions whose enumerations the tests of the
// adapters read. Nothing imports them, so that they reach no program. The requirements are written
// by hand: go mod tidy would remove them. A newer version is taken with
//
//	GOWORK=off go get MODULE@latest && GOWORK=off go mod download MODULE
module github.com/pawl-go/pawl/internal/test/wiretest/testdata/sdks

go 1.26.0

require (
	github.com/anthropics/anthropic-sdk-go v1.84.0
	github.com/openai/openai-go/v3 v3.99.0
	google.golang.org/genai v1.77.0
)
