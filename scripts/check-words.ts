import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parseAst } from 'rolldown/parseAst'

/**
 * Keeps a short list of phrases out of text that users read: SMTP replies, the command line, API messages, logs, the
 * console, the OpenAPI document, alerts and the documentation. Comments, tests, SQL and inline code in Markdown are not
 * checked. To prove that the check works, the script also fails unless it finds a phrase planted in each kind of text
 * and accepts similar sentences that are correct.
 */
const root = path.resolve(import.meta.dirname, '..')

interface Phrase {
  name: string
  pattern: RegExp
  /** A sentence in which the pattern must match. */
  planted: string
}

const phrases: Phrase[] = [
  { name: 'whoever', pattern: /\bwho(?:m|se)?ever\b/gi, planted: 'Whoever has the key can send.' },
  { name: 'nobody', pattern: /\bnobody\b(?!@)/gi, planted: 'Nobody reads it.' },
  {
    name: 'is told',
    pattern: /\b(?:is|are|was|were|be|been)\s+told\b/gi,
    planted: 'The sender is\ntold.',
  },
  { name: 'looked at', pattern: /\blooked\s+at\b/gi, planted: 'The records were looked at.' },
  { name: 'anew', pattern: /\banew\b/gi, planted: 'Register it anew.' },
  { name: 'for who', pattern: /\bfor\s+who\b/gi, planted: 'For who runs it.' },
  { name: 'such a thing', pattern: /\bsuch\s+(?:a\s+)?thing\b/gi, planted: 'There is no such thing.' },
  { name: 'come again', pattern: /\bcom(?:e|es|ing)\s+again\b/gi, planted: 'Not now; come again' },
  { name: 'in vain', pattern: /\bin\s+vain\b/gi, planted: 'It was tried in vain.' },
  {
    // "There is no x", "the default is no limit" and "is no longer" are correct; "x is no time" is not.
    name: 'is no (is not a)',
    pattern:
      /(?<!\bthere\s+)(?<!\bdefault\s+)\b(?:is|are|was|were)\s+no\s+(?!longer\b|more\b|less\b|later\b|earlier\b|fewer\b|better\b|one\b)[a-z]/gi,
    planted: '"x" is no time we know.',
  },
]

const accepted = [
  'There is no project 999.',
  'there\nare no endpoints',
  'The key is no longer valid.',
  'postgres://nobody@localhost/unused',
  'Ask the person for whom it is.',
  'The default is no limit.',
  'The message is not a report.',
]

interface Kind {
  name: string
  files: string[]
  /** If fewer strings or paragraphs than this are found, the files were not read. */
  atLeast: number
  planted: { file: string; text: (sentence: string) => string }
}

const quote = (sentence: string): string => JSON.stringify(sentence)
const source = (file: string, text: Kind['planted']['text']): Kind['planted'] => ({ file, text })
const call = (sentence: string): string => `fail(550, ${quote(sentence)})\n`

/** A file belongs to the first kind that lists it. */
const kinds: Kind[] = [
  {
    name: 'SMTP replies and intake',
    files: ['server/src/intake/**/*.ts'],
    atLeast: 50,
    planted: source('reply.ts', (sentence) => `const reply = new Refusal(451, ${quote(sentence)})\n`),
  },
  {
    name: 'command line',
    files: ['server/src/bin/**/*.ts', 'server/src/doctor/**/*.ts', 'server/src/config/**/*.ts'],
    atLeast: 500,
    planted: source(
      'manual.ts',
      (sentence) => `export const manual = { api: { about: ${quote(sentence)} } }\n`,
    ),
  },
  {
    name: 'API messages and logs',
    files: ['server/src/**/*.ts'],
    atLeast: 1000,
    planted: source(
      'log.ts',
      (sentence) => `// Whoever reads this.\nlog.warn({ a: 1 }, \`\${b} ${sentence}\`)\n`,
    ),
  },
  {
    name: 'console',
    files: ['console/src/**/*.{ts,tsx}'],
    atLeast: 500,
    planted: source('page.tsx', (sentence) => `export const Page = () => <p>\n{a} ${sentence}</p>\n`),
  },
  {
    name: 'OpenAPI',
    files: ['openapi/postern.v1.json'],
    atLeast: 1,
    planted: source('api.json', (sentence) => `{"description": ${quote(sentence.replace('\n', ' '))}}\n`),
  },
  {
    name: 'alerts',
    files: ['deploy/prometheus/alerts.yaml'],
    atLeast: 1,
    planted: source('alerts.yaml', (sentence) => `summary: ${sentence}\n`),
  },
  {
    name: 'documentation',
    files: ['*.md', 'docs/**/*.md', 'bench/README.md', 'proofs/README.md'],
    atLeast: 60,
    planted: source('page.md', (sentence) => `# Page\n\nThe \`nobody\` user. ${sentence}\n`),
  },
]

const notForUsers = /(?:\.test\.tsx?|\.gen\.ts|\.sql\.ts)$|^server\/src\/testing\//

interface Text {
  text: string
  line: number
}

interface Node {
  type: string
  start: number
  [key: string]: unknown
}

const problems: string[] = [...missedPlants(), ...falseAlarms()]
const taken = new Set<string>()
let found = 0
for (const kind of kinds) {
  const files = [...new Set(kind.files.flatMap((pattern) => globSync(pattern, { cwd: root })))]
    .filter((file) => !taken.has(file) && !notForUsers.test(file))
    .sort()
  let texts = 0
  for (const file of files) {
    taken.add(file)
    for (const text of textsOf(file, readFileSync(path.join(root, file), 'utf8'))) {
      texts++
      for (const { line, phrase, match } of phrasesIn(text)) {
        found++
        problems.push(`${file}:${line}: "${phrase}" in ${kind.name}: ${match}`)
      }
    }
  }
  if (texts < kind.atLeast) problems.push(`${kind.name}: only ${texts} texts were read`)
}

process.stdout.write(`${taken.size} files with text for users checked, ${found} phrases found.\n`)
for (const problem of problems) process.stderr.write(`${problem}\n`)
process.exitCode = problems.length === 0 ? 0 : 1

function missedPlants(): string[] {
  return kinds.flatMap(({ name, planted: { file, text } }) =>
    phrases
      .filter(({ name: phrase, planted }) => {
        const hits = textsOf(file, text(planted)).flatMap(phrasesIn)
        return hits.length !== 1 + overlaps(planted, phrase) || !hits.some((hit) => hit.phrase === phrase)
      })
      .map((phrase) => `${name}: the planted phrase "${phrase.name}" was not found, or something else was`),
  )
}

/** The number of phrases found in a planted sentence, not counting the intended one. */
function overlaps(sentence: string, phrase: string): number {
  return phrasesIn({ text: sentence, line: 1 }).filter((hit) => hit.phrase !== phrase).length
}

function falseAlarms(): string[] {
  return accepted.flatMap((sentence) =>
    textsOf('accepted.ts', call(sentence))
      .flatMap(phrasesIn)
      .map(({ phrase }) => `The phrase "${phrase}" was found in a correct sentence: ${sentence}`),
  )
}

function phrasesIn({ text, line }: Text): { line: number; phrase: string; match: string }[] {
  return phrases.flatMap(({ name, pattern }) =>
    [...text.matchAll(pattern)].map(({ index, 0: match }) => ({
      line: line + newlines(text.slice(0, index)),
      phrase: name,
      match: text
        .slice(Math.max(0, index - 30), index + match.length + 30)
        .replaceAll(/\s+/g, ' ')
        .trim(),
    })),
  )
}

function textsOf(file: string, content: string): Text[] {
  if (/\.tsx?$/.test(file)) return stringsOf(content, file.endsWith('x') ? 'tsx' : 'ts')
  const text = file.endsWith('.md') ? withoutInlineCode(content) : content
  return [{ text, line: 1 }]
}

/** Preserves offsets. */
function withoutInlineCode(page: string): string {
  return page.replace(/`[^`\n]+`/g, (code) => '`'.repeat(code.length))
}

function stringsOf(content: string, lang: 'ts' | 'tsx'): Text[] {
  const texts: Text[] = []
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) visit(item)
    if (typeof value !== 'object' || value === null || !('type' in value)) return
    const node = value as Node
    const text = textOf(node)
    if (text !== undefined) texts.push({ text, line: 1 + newlines(content.slice(0, node.start)) })
    for (const child of Object.values(node)) visit(child)
  }
  visit(parseAst(content, { lang }))
  return texts
}

function textOf({ type, value }: Node): string | undefined {
  if (type === 'TemplateElement') return (value as { cooked: string | null }).cooked ?? undefined
  if ((type === 'Literal' || type === 'JSXText') && typeof value === 'string') return value
  return undefined
}

function newlines(text: string): number {
  return text.split('\n').length - 1
}
