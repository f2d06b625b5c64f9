package canvas

// BarStyle is the style sheet of bars. In light and in dark mode, each hue has the
// contrast to a sign on it that text needs (WCAG 2.2, 4.5:1).
const BarStyle = `.hue-0 { fill: #9ecbff }
.hue-1 { fill: #85e89d }
.hue-2 { fill: #ffc680 }
.hue-3 { fill: #d1bcf9 }
.hue-4 { fill: #fbb6ce }
.hue-5 { fill: #7fdbda }
.hue-6 { fill: #ffea7f }
.hue-7 { fill: #d7c4a9 }
.free { fill: #ffffff; stroke: #d0d7de }
.blocked { fill: #ffffff; stroke: #bf8700; stroke-dasharray: 3 2 }
text.sign { fill: #1f2328; font-weight: 600 }
@media (prefers-color-scheme: dark) {
.hue-0 { fill: #1f6feb }
.hue-1 { fill: #238636 }
.hue-2 { fill: #bd561d }
.hue-3 { fill: #8957e5 }
.hue-4 { fill: #bf4b8a }
.hue-5 { fill: #1b7c83 }
.hue-6 { fill: #8a5a00 }
.hue-7 { fill: #6e5a45 }
.free { fill: #0d1117; stroke: #3d444d }
.blocked { fill: #0d1117; stroke: #d29922 }
text.sign { fill: #ffffff }
}
`
