package v1beta1

// QueueAllocationGateKey is the one constant in which volcano.sh/apis v1.15.1 differs in code from v1.14.0, the newest
// version that the Go module proxies serve. The build adds this file to its copy of v1.14.0.
const QueueAllocationGateKey = "scheduling.volcano.sh/queue-allocation-gate"
