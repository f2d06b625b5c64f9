// The site of docs/: the pages as they are, with search and a dark mode. make site builds it
// into bin/site. Nothing of it is in docs/: a page is written for GitHub first.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const docs = join(root, 'docs')
const source = 'https://github.com/dra-driver-numa/dra-driver-numa'

const read = (page) => readFileSync(join(docs, page), 'utf8')
const title = (page) => read(page).match(/^# (.+)$/m)[1].replaceAll('`', '')

// The sections of docs/README.md, which lists all pages.
const sidebar = read('README.md').split(/^## /m).slice(1).map((section) => ({
  text: section.split('\n', 1)[0],
  items: [...section.matchAll(/\]\(([\w-]+)\.md\)/g)].map(([, page]) => ({ text: title(page + '.md'), link: '/' + page })),
}))

// The anchors of headings that GitHub makes.
const slugify = (heading) => heading.trim().toLowerCase().replace(/[^\p{L}\p{N}_\- ]/gu, '').replaceAll(' ', '-')

// Links to pages have the title of the page instead of the name of its file. Links to other files
// lead to the source.
function siteLinks(markdown) {
  markdown.core.ruler.push('site-links', ({ tokens, env }) => {
    const inline = tokens.flatMap((token) => token.children ?? [])
    for (const [i, link] of inline.entries()) {
      if (link.type !== 'link_open') continue
      const [target, anchor] = link.attrGet('href').split('#')
      if (target === '' || /^[a-z]+:/.test(target)) continue
      if (inline[i + 1].content === target && dirname(target) === '.') inline[i + 1].content = title(target)
      const path = join(docs, dirname(env.relativePath), decodeURI(target))
      if (!existsSync(path)) throw new Error(`${env.relativePath}: dead link ${target}`)
      if (target === 'README.md') link.attrSet('href', 'index.md' + (anchor ? '#' + anchor : ''))
      else if (dirname(path) !== docs || !path.endsWith('.md')) {
        link.attrSet('href', `${source}/blob/main/${relative(root, path)}${anchor ? '#' + anchor : ''}`)
      }
    }
  })
}

// VitePress checks whether the page of a link exists, and not whether it has the heading.
function checkAnchors({ outDir }) {
  const pages = new Map(readdirSync(outDir, { recursive: true }).filter((name) => name.endsWith('.html'))
    .map((name) => ['/' + name, readFileSync(join(outDir, name), 'utf8')]))
  const dead = []
  for (const [page, html] of pages) {
    for (const [, href] of html.matchAll(/<a [^>]*?href="([^"]*)"/g)) {
      const url = new URL(href.replaceAll('&amp;', '&'), 'file://' + page)
      if (url.protocol !== 'file:') continue
      const target = pages.get(url.pathname.endsWith('/') ? url.pathname + 'index.html' : url.pathname)
      const id = decodeURIComponent(url.hash.slice(1))
      if (target === undefined || (id !== '' && !target.includes(` id="${id}"`))) dead.push(`${page}: ${href}`)
    }
  }
  if (dead.length > 0) throw new Error('dead links:\n' + dead.join('\n'))
  console.log(`checked the links of ${pages.size} pages`)
}

export default defineConfig({
  title: 'dra-driver-numa',
  description: 'Zones of a machine, with CPUs, memory, caches and PCI functions, as devices of Kubernetes',
  lang: 'en',
  // On a phone, a long command or name in a table would push the other columns out of sight.
  head: [['style', {}, '@media (max-width: 639px) { .vp-doc td code { overflow-wrap: anywhere } }']],
  srcDir: 'docs', // a copy, because pages import modules of Vue, which are not in folders above docs/
  outDir: join(root, 'bin/site'),
  rewrites: { 'README.md': 'index.md' },
  markdown: { anchor: { slugify }, config: siteLinks, languageAlias: { promql: 'sql' } },
  buildEnd: checkAnchors,
  themeConfig: {
    sidebar,
    outline: [2, 3],
    search: { provider: 'local' },
    socialLinks: [{ icon: 'github', link: source }],
    editLink: { pattern: source + '/edit/main/docs/:path' },
  },
})
