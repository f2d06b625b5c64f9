package ways

// mostClearing is how many steps a search for a window may take. In a cache of 12 ways
// none takes more than 6,580. In caches of 32 ways, one of a hundred random searches
// takes more than are allowed.
const mostClearing = 1 << 14

// clearing searches for the cheapest way to clear a window for a new claim. It moves
// one claim after the other to ways that are free at that moment, each claim at most
// once. So the moves can be written in the order in which they were found.
type clearing struct {
	area   Mask
	pieces []piece
	budget int

	window Mask
	masks  []Mask // of the pieces, after the moves so far
	least  cost   // only what costs less is looked for
	best   []Mask // of the pieces, and last the window
}

// search looks for a window of n ways that costs less than least, and reports whether
// it found one. It tries one move, then two, and so on, the lowest windows first.
func (c *clearing) search(n int) bool {
	c.masks = make([]Mask, len(c.pieces))
	for i, p := range c.pieces {
		c.masks[i] = p.old
	}
	for moves := 1; c.best == nil && cost(moves)*perMask < c.least; moves++ {
		for first := c.area.first(); first+n <= c.area.end(); first++ {
			c.window = run(first, n)
			c.clear(moves, 0)
		}
	}
	return c.best != nil
}

// clear makes the given number of moves or fewer, after moves that cost spent.
func (c *clearing) clear(moves int, spent cost) {
	var taken Mask
	inside, bound := 0, spent
	places := cost(c.window.first())
	for i, m := range c.masks {
		taken |= m
		places += cost(m.first())
		if m&c.window != 0 {
			inside++
			bound += perMask + cost(c.pieces[i].ways)*perWay
		}
	}
	if c.budget--; inside > moves || bound >= c.least || c.budget < 0 {
		return
	}
	if inside == 0 {
		if spent+places < c.least {
			c.least, c.best = spent+places, append(append(c.best[:0], c.masks...), c.window)
		}
		return
	}
	for i, m := range c.masks {
		if m == c.pieces[i].old && (inside < moves || m&c.window != 0) {
			c.move(i, c.area&^c.window&^(taken&^m), moves, spent)
		}
	}
}

// move moves a claim to each run of the free ways in turn, and goes on from there.
func (c *clearing) move(i int, free Mask, moves int, spent cost) {
	p := &c.pieces[i]
	for _, to := range runsOf(p.ways, free) {
		if to != p.old {
			c.masks[i] = to
			c.clear(moves-1, spent+p.move(to))
		}
	}
	c.masks[i] = p.old
}
