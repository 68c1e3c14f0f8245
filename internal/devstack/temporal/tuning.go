package main

import (
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

// tuning is the dynamic configuration of a server that has one host, one history shard and one user. The
// defaults are made for a cluster: six activities take 650 ms with them and 45 ms with these.
var tuning = dynamicconfig.StaticClient{
	// A shard may look for new tasks 20 times a second by default, which makes every hop of a workflow wait
	// for 50 ms. There is but one shard here.
	dynamicconfig.TransferProcessorMaxPollRPS.Key(): 1000,
	dynamicconfig.TimerProcessorMaxPollRPS.Key():    1000,
	// Timers and retries wait for a second at least, against clock skew between hosts. There is but one host.
	dynamicconfig.TimerProcessorMaxTimeShift.Key(): time.Millisecond,
	// A task that meets its poller in another partition waits for about 100 ms when there is little traffic.
	dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
	dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,
	// Fairness keys, which keep one tenant from starving another, are ignored without it.
	dynamicconfig.MatchingEnableFairness.Key(): true,
	// A search attribute is usable at once in a namespace that was made a moment ago; else after a refresh of
	// the cache. It costs one read of SQLite.
	dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
	// How long a namespace that was looked for too early, or changed, can stay unseen.
	dynamicconfig.NamespaceCacheRefreshInterval.Key(): 250 * time.Millisecond,
	// Making namespaces is limited to 20 a second in all; each test has one of its own.
	dynamicconfig.FrontendMaxNamespaceNamespaceReplicationInducingAPIsRPSPerInstance.Key(): 1000,
	dynamicconfig.FrontendNamespaceReplicationInducingAPIsRPS.Key():                        1000,
	// Listing and counting runs is limited to 10 a second for a shared cluster.
	dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 1000,
}
