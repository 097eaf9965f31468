import type { MarkdownOptions } from 'vitepress'

// Shiki writes a colour into a `style` attribute of every token, which the content security policy does not allow. This
// theme's colours are only marks: the transformer replaces each by a class, and theme/style.css has the colours.

const scopes: Record<string, string[]> = {
  comment: ['comment', 'punctuation.definition.comment'],
  string: ['string', 'punctuation.definition.string', 'markup.inline.raw'],
  number: ['constant', 'support.constant', 'variable.language'],
  keyword: ['keyword', 'storage', 'support.type.property-name', 'entity.name.tag', 'constant.other.option'],
  function: ['entity.name.function', 'support.function', 'entity.name.type', 'support.class'],
  variable: ['variable.other.normal.shell', 'punctuation.definition.variable', 'variable.parameter'],
  deleted: ['markup.deleted'],
  inserted: ['markup.inserted'],
}
const kinds = Object.keys(scopes)
const markOf = (index: number): string => `#0000${(index + 16).toString(16)}`
const classes = new Map(kinds.map((kind, index) => [`color:${markOf(index)}`, `tk-${kind}`]))
const plain = '#000000'

export const highlighting: NonNullable<MarkdownOptions['theme']> = {
  name: 'postern',
  type: 'light',
  colors: { 'editor.foreground': plain, 'editor.background': '#ffffff' },
  settings: kinds.map((kind, index) => ({
    scope: scopes[kind] ?? [],
    settings: { foreground: markOf(index) },
  })),
}

export const classTransformer: NonNullable<MarkdownOptions['codeTransformers']>[number] = {
  name: 'postern:classes',
  preprocess(_, options) {
    // By default, Shiki gives up on a line after 500 ms, so that a build on a busy machine would differ.
    options.tokenizeTimeLimit = 0
  },
  pre(node) {
    delete node.properties['style']
  },
  span(node) {
    const { style } = node.properties
    if (typeof style !== 'string') return
    delete node.properties['style']
    const kind = classes.get(style.toLowerCase())
    if (kind) node.properties['class'] = kind
  },
}
