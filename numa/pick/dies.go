package pick

// fewerDies moves the choice into fewer dies if it needs no more domains there: into the tightest die that can have
// it alone, else out of one die after the other, which finds the fewest of up to three dies and is good for more. It
// reports whether the choice may be another now.
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

// oneDie looks for a die that can have the whole choice in as many domains, and leaves the tightest as the best.
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

// restore chooses the best choice so far again.
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
