import { parseAst } from 'rolldown/parseAst'

/**
 * Finds comparisons and subtractions of two clock readings in a file. Each is an assertion about a duration or a wait
 * with its own limit. A value counts as a reading if it comes from a clock directly, through a variable or function in
 * the same file, or through a property that is set from a clock in any of the files (`receivedAtMs: Date.now()`).
 */
export interface Comparison {
  line: number
  text: string
}

interface Node {
  type: string
  start: number
  end: number
  [key: string]: unknown
}

const clocks = new Set([
  'performance.now',
  'Date.now',
  'process.hrtime',
  'process.hrtime.bigint',
  'process.cpuUsage',
  'process.threadCpuUsage',
  'process.uptime',
])
const differing = new Set(['process.hrtime', 'process.cpuUsage', 'process.threadCpuUsage'])
/** Names that are also properties of arrays or strings. */
const ambiguous = new Set(['at'])
const comparing = new Set(['-', '<', '<=', '>', '>='])

export interface ReadFile {
  text: string
  tree: Node
}

export const readSource = (text: string): ReadFile => ({
  text,
  tree: parseAst(text, { lang: 'ts' }) as unknown as Node,
})

/** The properties set to a reading in any of these files. */
export function clockProperties(files: readonly ReadFile[]): Set<string> {
  const names = new Set<string>()
  for (const { tree } of files) {
    const readings = readingsIn(tree, new Set())
    for (const node of nodesIn(tree)) {
      if (node.type === 'Property' && isReading(node['value'] as Node, readings))
        names.add(nameOf(node['key'] as Node))
      const left = node['left'] as Node | undefined
      if (node.type !== 'AssignmentExpression' || left?.type !== 'MemberExpression') continue
      if (isReading(node['right'] as Node, readings)) names.add(nameOf(left['property'] as Node))
    }
  }
  return names
}

export function findComparisons({ text, tree }: ReadFile, properties: ReadonlySet<string>): Comparison[] {
  const readings = readingsIn(tree, properties)
  const found = nodesIn(tree).filter((node) => isComparison(node, readings))
  // In `now() - start < 100` the subtraction has already been found.
  const outermost = found.filter((node) => !found.some((other) => other !== node && contains(other, node)))
  return outermost.map(({ start, end }) => ({
    line: text.slice(0, start).split('\n').length,
    text: text.slice(start, end).replace(/\s+/g, ' '),
  }))
}

function isComparison(node: Node, readings: Readings): boolean {
  // `process.cpuUsage(before)` subtracts implicitly.
  if (node.type === 'CallExpression')
    return differing.has(dotted(node['callee'] as Node)) && (node['arguments'] as Node[]).length > 0
  if (node.type !== 'BinaryExpression' || !comparing.has(String(node['operator']))) return false
  const [left, right] = [node['left'] as Node, node['right'] as Node]
  // A reading can only be subtracted from another point in time.
  if (node['operator'] === '-' && isReading(right, readings)) return true
  return holdsReading(left, readings) && holdsReading(right, readings)
}

interface Readings {
  /** Variables that are set to a reading, and functions that return one. */
  variables: Set<string>
  functions: Set<string>
  properties: ReadonlySet<string>
}

function readingsIn(tree: Node, properties: ReadonlySet<string>): Readings {
  const readings: Readings = { variables: new Set(), functions: new Set(), properties }
  // Two passes, because a variable can be set by a function declared below it.
  for (let round = 0; round < 2; round++) {
    for (const node of nodesIn(tree)) {
      if (node.type === 'VariableDeclarator' && node['init']) note(node['id'] as Node, node['init'] as Node)
      if (node.type === 'AssignmentExpression') note(node['left'] as Node, node['right'] as Node)
      if (node.type === 'FunctionDeclaration' && returnsReading(node, readings))
        readings.functions.add(nameOf(node['id'] as Node))
    }
  }
  return readings

  function note(target: Node, value: Node): void {
    if (target.type !== 'Identifier') return
    if (isFunction(value)) {
      if (returnsReading(value, readings)) readings.functions.add(nameOf(target))
    } else if (isReading(value, readings)) readings.variables.add(nameOf(target))
  }
}

const isFunction = ({ type }: Node): boolean =>
  type === 'ArrowFunctionExpression' || type === 'FunctionExpression'

function returnsReading(node: Node, readings: Readings): boolean {
  const body = node['body'] as Node
  if (body.type !== 'BlockStatement') return isReading(body, readings)
  return nodesIn(body).some(
    (inner) =>
      inner.type === 'ReturnStatement' && inner['argument'] && isReading(inner['argument'] as Node, readings),
  )
}

/** Whether the expression is a reading, possibly with an offset. */
function isReading(node: Node, readings: Readings): boolean {
  switch (node.type) {
    case 'CallExpression': {
      const callee = dotted(node['callee'] as Node)
      return clocks.has(callee) || readings.functions.has(callee)
    }
    case 'Identifier':
      return readings.variables.has(nameOf(node))
    case 'MemberExpression': {
      const name = nameOf(node['property'] as Node)
      return !ambiguous.has(name) && readings.properties.has(name)
    }
    case 'BinaryExpression':
      return (
        ['+', '-', '/', '*'].includes(String(node['operator'])) &&
        [node['left'], node['right']].some((side) => isReading(side as Node, readings))
      )
    case 'ParenthesizedExpression':
    case 'AwaitExpression':
    case 'TSAsExpression':
    case 'TSNonNullExpression':
      return isReading((node['expression'] ?? node['argument']) as Node, readings)
    default:
      return false
  }
}

/**
 * Whether the expression contains a reading outside nested functions: `Math.abs(Date.now() - x)`, `first?.receivedAtMs
 * ?? 0`.
 */
function holdsReading(node: Node, readings: Readings): boolean {
  return (
    isReading(node, readings) ||
    childrenOf(node).some((child) => !isFunction(child) && holdsReading(child, readings))
  )
}

const contains = (outer: Node, inner: Node): boolean => outer.start <= inner.start && inner.end <= outer.end

const nameOf = (node: Node): string => String(node['name'] ?? node['value'] ?? '')

function dotted(node: Node): string {
  if (node.type === 'Identifier') return nameOf(node)
  if (node.type !== 'MemberExpression') return ''
  return `${dotted(node['object'] as Node)}.${nameOf(node['property'] as Node)}`
}

function childrenOf(node: Node): Node[] {
  return Object.values(node)
    .flat()
    .filter((value): value is Node => typeof value === 'object' && value !== null && 'type' in value)
}

function nodesIn(tree: Node): Node[] {
  return [tree, ...childrenOf(tree).flatMap(nodesIn)]
}
