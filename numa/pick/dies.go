package pick

// fewerDies moves the choice into fewer dies if that needs no more domains. It first
// looks for the tightest die that can hold the whole choice. Otherwise it tries to
// leave one die after the other. That finds the fewest dies if there are up to three,
// and a good result if there are more. It reports whether the choice may have changed.
func (s *search) fewerDies() bool {
	if s.dies <= 1 || len(s.domains) == s.zone.dies {
		return false
	}
	size, fewest := s.size, s.dies
	copy(s.best, s.chosen)
	if !s.oneDie(size) {
		clear(s.barred)
		s.restore()
		for die := range s.barred {
			if s.inDie[die] == 0 {
				continue
			}
			s.barred[die] = true
			if s.cover() && s.size == size && s.dies < fewest {
				copy(s.best, s.chosen)
				fewest = s.dies
				continue
			}
			s.barred[die] = false
			s.restore()
		}
	}
	s.restore()
	clear(s.barred)
	return true
}

// oneDie looks for dies that can hold the whole choice in as many domains, and stores
// the choice in the tightest of them in best.
func (s *search) oneDie(size int) bool {
	found := -1
	for die, free := range s.dieFree {
		if int(free) < s.n || found >= 0 && s.dieFree[found] <= free {
			continue
		}
		for other := range s.barred {
			s.barred[other] = other != die
		}
		if s.cover() && s.size == size && s.dies == 1 {
			found = die
			copy(s.best, s.chosen)
		}
	}
	return found >= 0
}

// restore makes the best choice so far the current choice.
func (s *search) restore() {
	for i, chosen := range s.best {
		if s.chosen[i] && !chosen {
			s.drop(int32(i))
		}
	}
	for i, chosen := range s.best {
		if chosen && !s.chosen[i] {
			s.choose(int32(i))
		}
	}
}
