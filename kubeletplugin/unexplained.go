package kubeletplugin

import "k8s.io/klog/v2"

const (
	reasonUnexplained = "NUMACpusetsUnexplained"
	reasonExplained   = "NUMACpusetsExplained"

	unexplainedText = "Another program gives containers cpusets, and may give them the CPUs of claims: an NRI resource policy, such as balloons or topology-aware, or the kubelet. " +
		"The daemon's log names one of the containers, and kubectl numa validate the policies. Run only one of the programs on the node"
)

// unexplainedNotice names no container, so that there is one event and not one for each.
func unexplainedNotice() notice {
	return notice{reason: reasonUnexplained, overReason: reasonExplained, over: "Claims and this driver explain the cpusets of all containers"}
}

// seeUnexplained has the publisher tell of containers whose cpuset is another program's.
func (p *Plugin) seeUnexplained() {
	if p.pool == nil {
		return
	}
	names := p.pool.Unexplained()
	p.counters.unexplained.Store(int64(len(names)))
	p.publisher.setUnexplained(names)
}

func (p *publisher) setUnexplained(names []string) {
	text := ""
	if len(names) > 0 {
		text = unexplainedText
	}
	if p.setText(&p.unexplained, text) && text != "" {
		klog.Background().Info("Neither a claim nor this driver explains the cpusets of containers", "containers", len(names), "first", names[0])
	}
}
