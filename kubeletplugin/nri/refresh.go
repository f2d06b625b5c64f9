package nri

import (
	"errors"
	"fmt"
	"maps"

	"github.com/containerd/nri/pkg/api"
)

// repair is for a container that has not what it should have.
type repair struct {
	container *container
	aim       placement // the lists that differ; all if nobody knows what it has
}

var errUpdateFailed = errors.New("the runtime could not change it")

// repairs compares what containers have with what they should have.
func (p *Plugin) repairs(containers map[string]*container) (list []repair) {
	rest := p.shared()
	for _, c := range containers {
		aim := p.aim(c, rest)
		if !c.unsure {
			aim = c.has.missing(aim)
		}
		if aim != (placement{}) {
			list = append(list, repair{c, aim})
		}
	}
	return list
}

// refresh sends all repairs in one call. A runtime that fails in some of them
// need not say in which, as containerd 2.4 does not, so what failed before goes
// each by itself: in the end it is known who has what.
func (p *Plugin) refresh(s *session) error {
	p.mu.Lock()
	containers := maps.Clone(p.containers)
	p.mu.Unlock()
	var together []repair
	var failed error
	for _, due := range p.repairs(containers) {
		if !due.container.unsure {
			together = append(together, due)
		} else if err := p.apply(s, due); err != nil {
			failed = err
		}
	}
	if err := p.apply(s, together...); err != nil {
		failed = err
	}
	return failed
}

// apply returns the last error, if there is one.
func (p *Plugin) apply(s *session, repairs ...repair) (failure error) {
	if len(repairs) == 0 {
		return nil
	}
	updates := make([]*api.ContainerUpdate, 0, len(repairs))
	for _, due := range repairs {
		updates = append(updates, due.aim.update(due.container.id))
	}
	p.updates.Add(uint64(len(updates)))
	failed, err := s.stub.UpdateContainers(updates)
	bad := map[string]bool{}
	for _, update := range failed {
		bad[update.GetContainerId()] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, due := range repairs {
		problem := err
		if bad[due.container.id] {
			problem = errors.Join(errUpdateFailed, err)
		}
		p.settle(due, problem == nil)
		if problem != nil {
			failure = fmt.Errorf("update container %s and %d others: %w", due.container.id, len(repairs)-1, problem)
		}
	}
	return failure
}

// settle is for the holder of the lock.
func (p *Plugin) settle(sent repair, done bool) {
	switch now, exists := p.containers[sent.container.id]; {
	case !exists: // meanwhile it stopped
	case now != sent.container, !done: // somebody else changed it too, in whatever order
		p.containers[now.id] = now.doubted()
	default:
		p.containers[now.id] = now.settled(sent.aim)
	}
}
