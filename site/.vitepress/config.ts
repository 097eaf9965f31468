import { readFileSync } from 'node:fs'
import { defineConfig, type Plugin } from 'vitepress'
import { licencesOf } from '../../scripts/licences.ts'
import { slugify } from '../slugify.ts'
import { fixedGroupIds } from './code-groups.ts'
import { classTransformer, highlighting } from './highlighting.ts'

interface Entry {
  path: string
  section: string
  group: string
  title: string
}

interface Contents {
  pages: Entry[]
  reference: Omit<Entry, 'section'>[]
}

const { pages, reference }: Contents = JSON.parse(
  readFileSync(new URL('../.stage/contents.json', import.meta.url), 'utf8'),
)
const entries: Entry[] = [...pages, ...reference.map((page) => ({ ...page, section: 'API reference' }))]
const sections = ['Start', 'Guide', 'Operations', 'API reference', 'Security', 'Decisions', 'Contributing']

const linkOf = (path: string): string => `/${path.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, '')}`

function groupsOf(section: string) {
  const own = entries.filter((entry) => entry.section === section)
  const groups = [...new Set(own.map(({ group }) => group))]
  return groups.map((text) => ({
    text,
    items: own
      .filter(({ group }) => group === text)
      .map(({ title, path }) => ({ text: title, link: linkOf(path) })),
  }))
}

/** `/guide/` of `guide/sending.md`. */
const folderOf = (path: string): string => (path.includes('/') ? `/${path.split('/')[0]}/` : '/')

/** A page shows the sidebar of its section. Start and Guide share one. */
const sidebarOf = (section: string) =>
  section === 'Start' || section === 'Guide'
    ? [...groupsOf('Start'), ...groupsOf('Guide')]
    : groupsOf(section)

export default defineConfig({
  lang: 'en',
  title: 'Postern',
  description: 'The documentation of Postern, a self-hosted, multi-tenant email sending service.',
  base: '/docs/',
  srcDir: '.stage',
  outDir: '../server/docs',
  // Works on every web server, without rewriting.
  cleanUrls: false,
  // The pages that a page links to are several times its size.
  router: { prefetchLinks: false },
  // The order in which pages enter the search index is then the same in every build.
  buildConcurrency: 1,
  // One external file instead of an inline script that differs from build to build.
  metaChunk: true,
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: '/docs/icon.svg' }]],
  markdown: {
    theme: highlighting,
    codeTransformers: [classTransformer],
    anchor: { slugify },
    headers: { level: [2, 3] },
    config: fixedGroupIds,
  },
  // The Markdown of the pages, which is served beside them.
  srcExclude: ['public/**'],
  transformHtml: withoutStyles,
  vite: {
    plugins: [licences()],
    build: { assetsInlineLimit: 0, chunkSizeWarningLimit: 4000 },
  },
  themeConfig: {
    logo: '/icon.svg',
    outline: [2, 3],
    nav: sections.map((section) => {
      const first = entries.find((entry) => entry.section === section)
      const at = linkOf(first?.path ?? 'index.md')
      return { text: section, link: at, activeMatch: activeMatchOf(section) }
    }),
    sidebar: Object.fromEntries(entries.map(({ path, section }) => [folderOf(path), sidebarOf(section)])),
    search: { provider: 'local', options: { detailedView: false } },
    docFooter: { prev: 'Previous page', next: 'Next page' },
  },
})

/** Start is the root, and everything else is below the section's folder. */
function activeMatchOf(section: string): string {
  const first = entries.find((entry) => entry.section === section)?.path ?? ''
  return first.includes('/') ? `^${folderOf(first)}` : '^/(index\\.html|guide/install\\.html)?$'
}

/** The content security policy allows no styles in attributes. theme/style.css has the same ones. */
function withoutStyles(html: string): string {
  const clean = html.replaceAll(/ style="(position:relative;|--vp-vh:0px;)"/g, '')
  const [other] = / style="[^"]*"/.exec(clean) ?? []
  if (other !== undefined) throw new Error(`A page has the attribute${other}.`)
  return clean
}

/** Writes THIRD-PARTY.txt: every package that the scripts contain, with its licence. */
function licences(): Plugin {
  return {
    name: 'postern:licences',
    apply: (_, { isSsrBuild }) => isSsrBuild !== true,
    async generateBundle() {
      const source = await licencesOf([...this.getModuleIds()])
      this.emitFile({ type: 'asset', fileName: 'THIRD-PARTY.txt', source })
    },
  }
}
