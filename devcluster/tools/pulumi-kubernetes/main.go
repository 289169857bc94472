// The Kubernetes resource provider, release 4.25.0. Its own main package embeds two files that its release build
// generates; the build here copies both (schema.json and terraform-mapping.json) out of the provider's module.
package main

import (
	_ "embed"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
)

//go:embed schema.json
var schema []byte

//go:embed terraform-mapping.json
var terraformMapping []byte

func main() {
	provider.Serve("kubernetes", "4.25.0", schema, terraformMapping)
}
