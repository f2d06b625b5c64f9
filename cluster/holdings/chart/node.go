package chart

import (
	"fmt"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// scene is the drawing of a node while it is being arranged.
type scene struct{ *Signs }

// node draws one node: its sums, its problems, a box for each NUMA node, and a legend.
func node(c holdings.Cluster, n *holdings.Node) canvas.Part {
	s := scene{NewSigns()}
	head := canvas.Stack{Parts: []canvas.Part{canvas.Text(n.Name, canvas.Heading)}}
	var sums []string
	for _, r := range n.Totals {
		sums = append(sums, Label(r.Name)+" "+Left(r))
	}
	if len(sums) > 0 {
		head.Parts = append(head.Parts, canvas.Paragraph{Words: canvas.Words(strings.Join(sums, ", "), canvas.Plain), Indent: 2})
	}
	for _, problem := range n.Problems {
		head.Parts = append(head.Parts, canvas.Paragraph{Words: canvas.Words("! "+problem, canvas.IsolatedText), Indent: 2})
	}
	var boxes canvas.Grid
	for _, place := range n.View().Places {
		look := canvas.SocketFrame
		if place.NUMANode == nil {
			look = canvas.OtherFrame
		}
		boxes = append(boxes, canvas.Box{Title: place.Title, Look: look, Content: canvas.Stack{Parts: s.devices(place.Devices)}})
	}
	return canvas.Stack{Gap: 1, Parts: []canvas.Part{canvas.Stack{Parts: []canvas.Part{head, boxes}}, s.legend(c)}}
}

// namedDevices is the maximum number of devices of a driver on a NUMA node that have a
// line each. If there are more, they are a strip.
const namedDevices = 12

// devices draws zones and shared devices with their bars, then all other devices.
func (s *scene) devices(list []holdings.Device) (parts []canvas.Part) {
	others := make(map[string][]*holdings.Device)
	var drivers []string
	zones := 0
	for i := range list {
		if list[i].Zone {
			zones++
		}
	}
	for i := range list {
		device := &list[i]
		if device.Zone && device.State != holdings.StateUnpublished && (zones > 1 || !strings.HasPrefix(device.Name, "numa-")) {
			// The title of the box does not contain the name of the zone.
			parts = append(parts, canvas.Text(device.Name, canvas.DeviceText))
		}
		if device.Zone || len(device.Resources) > 0 {
			parts = append(parts, s.bars(device)...)
			continue
		}
		if others[device.Driver] == nil {
			drivers = append(drivers, device.Driver)
		}
		others[device.Driver] = append(others[device.Driver], device)
	}
	for _, driver := range drivers {
		parts = append(parts, s.exclusive(driver, others[driver])...)
	}
	return parts
}

// bars draws a device that claims can share.
func (s *scene) bars(device *holdings.Device) (parts []canvas.Part) {
	if !device.Zone {
		parts = append(parts, canvas.Text(device.Name+" of "+device.Driver, canvas.DeviceText))
	}
	parts = append(parts, warnings(device)...)
	s.Meet(device)
	for _, r := range device.Shown() {
		line := canvas.Paragraph{Words: canvas.Words(Label(r.Name)+": "+Left(r), canvas.Plain), Indent: 2}
		parts = append(parts, line, s.Strip(device, r))
	}
	return parts
}

// warnings says why a device cannot be allocated, or not by every claim.
func warnings(device *holdings.Device) (parts []canvas.Part) {
	if device.State == holdings.StateUnpublished {
		parts = append(parts, canvas.Text(device.Name+" is not published, so its total is not known", canvas.IsolatedText))
	}
	if device.State == holdings.StateBlocked {
		parts = append(parts, canvas.Text("cannot be allocated: "+device.Reason, canvas.IsolatedText))
	}
	for _, taint := range device.Taints {
		style := canvas.IsolatedText
		if !taint.Acts() {
			style = canvas.Plain
		}
		parts = append(parts, canvas.Paragraph{Words: canvas.Words("tainted: "+taint.String(), style), Indent: 2})
	}
	return parts
}

// exclusive draws the devices of one driver that claims hold as a whole.
func (s *scene) exclusive(driver string, list []*holdings.Device) (parts []canvas.Part) {
	if len(list) <= namedDevices {
		for _, device := range list {
			parts = append(parts, s.line(device))
		}
		return parts
	}
	free := 0
	var strip canvas.Strip
	for _, device := range list {
		if device.State == holdings.StateFree {
			free++
		}
		s.Meet(device)
		strip = append(strip, s.Cell(device))
	}
	head := fmt.Sprintf("%d devices of %s, %d free", len(list), driver, free)
	return append(parts, canvas.Text(head, canvas.DeviceText), strip)
}

// line draws a device and the claim that holds it.
func (s *scene) line(device *holdings.Device) canvas.Part {
	text := device.Name + " of " + device.Driver
	if product := device.Product(); product != "" {
		text += ", " + product
	}
	switch {
	case device.State == holdings.StateBlocked:
		text += ": cannot be allocated, " + device.Reason
	case device.State == holdings.StateUnpublished:
		text += ": not published"
	}
	for _, taint := range device.Taints {
		text += "; tainted " + taint.String()
	}
	s.Meet(device)
	return canvas.Entry{Sample: canvas.Strip{s.Cell(device)}, Text: text, Column: 2}
}
