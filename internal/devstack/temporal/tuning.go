package main

import (
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

// tuning is the dynamic configuration of a server that has one host, one history shard and one user. The
// defaults are made for a cluster: six activities take 650 ms with them and 45 ms with these.
var tuning = dynamicconfig.StaticClient{
	// By default a shard looks for new tasks 20 times a second, so that every step of a workflow waits for 50 ms. Here
	// there is only one shard.
	dynamicconfig.TransferProcessorMaxPollRPS.Key(): 1000,
	dynamicconfig.TimerProcessorMaxPollRPS.Key():    1000,
	// By default timers and retries wait for at least a second, against clock skew between hosts. Here there is only
	// one host.
	dynamicconfig.TimerProcessorMaxTimeShift.Key(): time.Millisecond,
	// A task that meets its poller in another partition waits for about 100 ms when there is little traffic.
	dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
	dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,
	// Without this, the fairness keys that keep one tenant from starving another are ignored.
	dynamicconfig.MatchingEnableFairness.Key(): true,
	// This makes a search attribute usable at once in a new namespace, and not only after a refresh of the cache. It
	// costs one read of SQLite.
	dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
	// How long a new or changed namespace can stay unnoticed.
	dynamicconfig.NamespaceCacheRefreshInterval.Key(): 250 * time.Millisecond,
	// By default 20 namespaces a second can be created; each test has one of its own.
	dynamicconfig.FrontendMaxNamespaceNamespaceReplicationInducingAPIsRPSPerInstance.Key(): 1000,
	dynamicconfig.FrontendNamespaceReplicationInducingAPIsRPS.Key():                        1000,
	// By default runs can be listed and counted 10 times a second, for a shared cluster.
	dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 1000,
}
