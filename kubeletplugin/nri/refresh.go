package nri

import (
	"errors"
	"fmt"
	"maps"

	"github.com/containerd/nri/pkg/api"
)

// repair is an update of a container that does not have what it should have.
type repair struct {
	container *container
	aim       placement // the lists that differ; all lists if it is not known what the container has
}

var errUpdateFailed = errors.New("the runtime reports that the update failed")

// repairs returns an update for each container that does not have what it should have. The
// containers that these updates restrict are in narrowed then.
func (p *Plugin) repairs(containers map[string]*container) (list []repair) {
	rest := p.shared()
	var restricted []string
	for _, c := range containers {
		aim := p.aim(c, rest)
		if !c.unsure {
			aim = c.has.missing(aim)
		}
		if aim != (placement{}) {
			list = append(list, repair{c, aim})
			if p.restricts(c, aim) {
				restricted = append(restricted, c.id)
			}
		}
	}
	p.narrowed.add(restricted...)
	return list
}

// refresh sends the repairs in one call, except those that failed before. A runtime may
// not say which repairs of a call failed (containerd 2.4 does not). So repairs that
// failed before get a call each, and in the end it is known what each container has.
func (p *Plugin) refresh(s *session) error {
	p.mu.Lock()
	containers := maps.Clone(p.containers)
	p.mu.Unlock()
	var together []repair
	var failed error
	repairs := p.repairs(containers)
	p.narrowed.save() // before the runtime gets them; no handler waits here
	for _, due := range repairs {
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

// apply sends repairs in one call and records the results. It returns the last error,
// if there is one.
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
			others := ""
			if len(repairs) > 1 {
				others = fmt.Sprintf(", in a call for %d", len(repairs))
			}
			failure = fmt.Errorf("update container %s%s: %w", due.container.name, others, problem)
		}
	}
	return failure
}

// settle records the result of one repair. The caller holds the lock.
func (p *Plugin) settle(sent repair, done bool) {
	switch now, exists := p.containers[sent.container.id]; {
	case !exists: // it has stopped meanwhile
	case now != sent.container, !done: // another update came in between, or this one failed
		p.containers[now.id] = now.doubted()
	default:
		p.containers[now.id] = now.settled(sent.aim)
	}
}
