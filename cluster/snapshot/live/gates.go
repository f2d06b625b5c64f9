package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// gateMetric is the metric that every Kubernetes component has for each of its feature
// gates. Its value is 1 if the gate is on
// (k8s.io/component-base/metrics/prometheus/feature).
const gateMetric = "kubernetes_feature_enabled{"

// Gates reads the feature gates of the API server from its metrics, and returns whether
// they are on. The scheduler of a cluster normally has the same gates. The user needs
// the verb get on the path /metrics, which not every user has.
func Gates(ctx context.Context, client rest.Interface) (map[string]bool, error) {
	body, err := client.Get().AbsPath("/metrics").SetHeader("Accept", "text/plain").Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("get /metrics: %w", err)
	}
	defer body.Close()
	return parseGates(body)
}

// parseGates reads metrics in the text format of Prometheus. The metrics are sorted by
// name, so it stops after the gates.
func parseGates(text io.Reader) (map[string]bool, error) {
	gates := make(map[string]bool)
	reader := bufio.NewReader(text)
	for {
		line, err := reader.ReadString('\n')
		if rest, is := strings.CutPrefix(line, gateMetric); is {
			name, on, isGate := parseGate(strings.TrimSuffix(rest, "\n"))
			if !isGate {
				return nil, fmt.Errorf("metric %q: want %sname=\"NAME\",stage=\"STAGE\"} 0 or 1", message.OneLine(line), gateMetric)
			}
			gates[name] = on
		} else if len(gates) > 0 {
			return gates, nil
		}
		if errors.Is(err, io.EOF) {
			if len(gates) > 0 {
				return gates, nil
			}
			return nil, fmt.Errorf("the metrics have no %s", strings.TrimSuffix(gateMetric, "{"))
		}
		if err != nil {
			return nil, err
		}
	}
}

// parseGate reads the part of a line after the bracket: name="X",stage="BETA"} 1.
func parseGate(text string) (name string, on, isGate bool) {
	labels, value, _ := strings.Cut(text, "} ")
	for label := range strings.SplitSeq(labels, ",") {
		if quoted, is := strings.CutPrefix(label, "name="); is {
			name = strings.Trim(quoted, `"`)
		}
	}
	return name, value == "1", name != "" && (value == "0" || value == "1")
}
