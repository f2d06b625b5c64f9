package kubeletplugin

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// The Node owns its slices. The helper asks for the UID of the Node only once. If the Node is
// deleted and registered again meanwhile, all slices that the helper creates have an owner that
// does not exist, and the garbage collector deletes them, each time.

// seeOwner remembers the owner of the slices that the helper stores.
func (p *publisher) seeOwner() {
	if !p.begun {
		return // a daemon of before has stored them
	}
	for _, slice := range p.slices.own() {
		for _, owner := range slice.OwnerReferences {
			p.owner = owner.UID
		}
	}
}

// send has the helper publish the devices. If slices are gone, it first asks whether the Node is
// still the one that the helper knows. If it is not, the daemon ends: the next one asks again. If
// it is, nobody asks again before there are slices.
func (p *publisher) send(ctx context.Context, resources resourceslice.DriverResources) error {
	if p.owner != "" && len(p.slices.own()) < len(resources.Pools[p.nodeName].Slices) {
		node, err := p.client.CoreV1().Nodes().Get(ctx, p.nodeName, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || err == nil && node.UID != p.owner:
			err = fmt.Errorf("node %s was deleted since its ResourceSlices were created: starting again, because the next ones need the UID of the new Node", p.nodeName)
			p.fatal(err)
			return err
		case err != nil:
			return fmt.Errorf("read node %s: %w", p.nodeName, err)
		}
		p.owner = ""
	}
	err := p.publish(ctx, resources)
	p.begun = p.begun || err == nil
	return err
}
