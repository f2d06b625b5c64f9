package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/translation"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

const translationColumns columns = "KIND,OBJECT,PODS,RESULT,NO NODE,TEMPLATE,WHY,WHERE"

// translationText returns a line for each workload or pod and, below it, what changes. In the
// format wide, or sorted, each is a row of a table.
func translationText(s style, report *translation.Report) string {
	if s.wide || s.sortBy != "" {
		return translationTable(s, report)
	}
	var b strings.Builder
	for _, item := range report.Items {
		fmt.Fprintf(&b, "%s %s in %s: %s\n", item.Kind, message.OneLine(itemKey(item)), item.Where, becomes(item))
		for _, line := range changes(item) {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	b.WriteString("would be translated: " + countText(report.Translated))
	if report.Simulated {
		fmt.Fprintf(&b, ", %d without a node", report.NoNode)
	}
	fmt.Fprintf(&b, "; left alone: %s; cannot be translated: %s\n", countText(report.LeftAlone), countText(report.Impossible))
	return b.String()
}

func countText(count translation.Count) string {
	return fmt.Sprintf("%s (%s)", plural(count.Pods, "pod"), plural(count.Objects, "object"))
}

func plural(count int, what string) string {
	if count == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", count, what)
}

// itemKey returns the name of a pod or workload and, of a JobSet, that of the job.
func itemKey(item *translation.Item) string {
	key := item.Namespace + "/" + item.Name
	if item.Job != "" {
		key += ", job " + item.Job
	}
	return key
}

// becomes says what becomes of the pods of an item.
func becomes(item *translation.Item) string {
	pods, is := plural(item.Pods, "pod"), "are"
	if item.Kind == snapshot.DaemonSet && item.Pods == 0 {
		pods = "a pod on each node"
	}
	if item.Pods == 1 || strings.HasPrefix(pods, "a ") {
		is = "is"
	}
	switch item.Result {
	case translation.Translated:
		return pods + " would be translated"
	case translation.LeftAlone:
		return fmt.Sprintf("%s %s left alone: %s", pods, is, message.OneLine(item.Why))
	}
	return fmt.Sprintf("%s cannot be translated: %s", pods, message.OneLine(item.Why))
}

// changes returns a line for each thing that changes.
func changes(item *translation.Item) (lines []string) {
	if item.Claim == nil {
		return nil
	}
	add := func(format string, args ...any) { lines = append(lines, message.OneLine(fmt.Sprintf(format, args...))) }
	add("claim of template %s:", item.Template)
	for _, request := range item.Claim.Devices.Requests {
		lines = append(lines, "  request "+message.OneLine(requestText(request)))
	}
	for _, constraint := range item.Claim.Devices.Constraints {
		if constraint.MatchAttribute != nil {
			lines = append(lines, "  "+message.OneLine(fmt.Sprintf("the same %s: %s", *constraint.MatchAttribute, cmp.Or(strings.Join(constraint.Requests, ", "), "all requests"))))
		}
	}
	for _, config := range item.Claim.Devices.Config {
		if config.Opaque != nil {
			lines = append(lines, "  "+message.OneLine(fmt.Sprintf("config %s: %s", config.Opaque.Parameters.Raw, cmp.Or(strings.Join(config.Requests, ", "), "all requests"))))
		}
	}
	for _, container := range item.Containers {
		if used := strings.Join(container.Requests, ", "); used != container.Name { // the name of its only request
			add("container %s uses %s", container.Name, cmp.Or(used, "nothing of the claim"))
		}
		if len(container.Leaves) > 0 {
			add("container %s no longer asks for %s", container.Name, amountsText(container.Leaves))
		}
	}
	for _, note := range item.Notes {
		add("%s", note)
	}
	if len(item.Nodes) > 0 {
		var nodes []string
		for _, node := range sortedNames(item.Nodes) {
			nodes = append(nodes, fmt.Sprintf("%d on %s", item.Nodes[node], node))
		}
		add("would run: %s", message.First(nodes, maxNodes))
	}
	if count := len(item.Unschedulable); count > 0 {
		first := item.Unschedulable[0]
		add("would have no node: %s, such as %s", plural(count, "pod"), first.Pod)
		for _, line := range reasonLines(first.Reasons) {
			lines = append(lines, "  "+line)
		}
	}
	return lines
}

// requestText describes a request of a claim, with its alternatives.
func requestText(request resourceapi.DeviceRequest) string {
	one := func(class string, count int64, capacity *resourceapi.CapacityRequirements) string {
		text := class
		if count != 1 {
			text = fmt.Sprintf("%d times %s", count, class)
		}
		if capacity != nil {
			text += ", " + capacityText(capacity.Requests, nil)
		}
		return text
	}
	if exactly := request.Exactly; exactly != nil {
		return request.Name + ": " + one(exactly.DeviceClassName, exactly.Count, exactly.Capacity)
	}
	var places []string
	for _, place := range request.FirstAvailable {
		places = append(places, fmt.Sprintf("%s: %s", place.Name, one(place.DeviceClassName, place.Count, place.Capacity)))
	}
	return request.Name + ", the first available of " + strings.Join(places, "; ")
}

func amountsText(amounts corev1.ResourceList) string {
	var parts []string
	for _, name := range sortedNames(amounts) {
		parts = append(parts, fmt.Sprintf("%s %s", name, spelling.Text(amounts[name])))
	}
	return strings.Join(parts, ", ")
}

func translationTable(s style, report *translation.Report) string {
	if len(report.Items) == 0 {
		return ""
	}
	rows := [][]string{translationColumns.headers()}
	for _, item := range report.Items {
		without := "-"
		if report.Simulated && item.Result == translation.Translated {
			without = strconv.Itoa(len(item.Unschedulable))
		}
		rows = append(rows, []string{item.Kind, itemKey(item), strconv.Itoa(item.Pods), item.Result, without, cmp.Or(item.Template, "-"), cmp.Or(item.Why, "-"), item.Where})
	}
	return s.table(rows, 0)
}

// translatedNames returns the pods and workloads that are translated.
func translatedNames(report *translation.Report) (names []objectName) {
	for _, item := range report.Items {
		name := objectName{item.Kind, objectGroup(item.Kind), item.Namespace, item.Name}
		if item.Result == translation.Translated && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// translationVerdict returns an error if something cannot be translated, or has no node
// afterwards.
func translationVerdict(report *translation.Report) error {
	objects := report.Translated.Objects + report.LeftAlone.Objects + report.Impossible.Objects
	var texts []string
	if count := report.Impossible.Objects; count > 0 {
		texts = append(texts, fmt.Sprintf("%d of %d objects cannot be translated", count, objects))
	}
	if report.NoNode > 0 {
		texts = append(texts, fmt.Sprintf("%d of %d translated pods have no node", report.NoNode, report.Translated.Pods))
	}
	if len(texts) == 0 {
		return nil
	}
	return &failure{fmt.Errorf("%s", strings.Join(texts, ", "))}
}
