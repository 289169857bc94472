// CoreDNS with the plugins that ../../manifests/coredns.yaml names. With all of them most of its compile time would go
// into clients of clouds (https://coredns.io/2017/07/25/compile-time-enabling-or-disabling-plugins/).
package main

import (
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"

	"github.com/coredns/coredns/coremain"
)

func main() {
	coremain.Run()
}
