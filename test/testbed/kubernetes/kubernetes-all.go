// All programs of a cluster in one: which one it is is told by the name it is called by.
package main

import (
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var programs = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              proxy.NewProxyCommand,
	"kubelet":                 kubelet.NewKubeletCommand,
}

func main() {
	rand.Seed(time.Now().UnixNano())
	name := filepath.Base(os.Args[0])
	program, known := programs[name]
	if !known {
		fmt.Fprintln(os.Stderr, "there is no program called", name)
		os.Exit(2)
	}
	command := program()
	// As each of them does in its own main function.
	if name == "kube-scheduler" || name == "kube-proxy" {
		pflag.CommandLine.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	}
	if name == "kube-proxy" {
		pflag.CommandLine.AddGoFlagSet(flag.CommandLine)
	}
	logs.InitLogs()
	defer logs.FlushLogs()
	if command.Execute() != nil {
		os.Exit(1)
	}
}
