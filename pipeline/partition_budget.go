package pipeline

// tailBudget returns the most that the tail may take of a window, in tokens; 0 if the window is 0.
func tailBudget(s Settings, window int) int {
	fraction := s.TailMaxFraction
	if !(fraction > 0 && fraction <= 1) {
		fraction = DefaultSettings().TailMaxFraction
	}
	return floorShare(max(window, 0), fraction)
}

// overBudget reports whether the tail from p, with the user message that would be carried, is too large.
func (d *division) overBudget(p int) bool {
	size := d.after[p]
	if d.lastUser >= 0 && d.lastUser < p {
		size += d.after[d.lastUser] - d.after[d.lastUser+1]
	}
	budget := tailBudget(d.in.Settings, d.in.Window)
	return budget > 0 && size > budget
}

// forward returns the first step boundary behind p from which the tail is within its budget, or the last possible one
// if there is none.
func (d *division) forward(p int) int {
	for q := p + 1; q <= d.floor; q++ {
		if d.sound(q) && !d.overBudget(q) {
			return q
		}
	}
	return d.floor
}
