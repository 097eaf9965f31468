import * as prometheus from '@prometheus-io/client'

/**
 * The types of Postern's metrics, and their registry. Each module registers its own metrics when it is loaded, so a
 * process exports those of its parts, and `postern all` exports all of them (bin/all.ts). The registry is global to the process: no decision depends on it, so it
 * is not passed as a dependency.
 *
 * The values of a label are a closed list, enforced by types. No project, domain, endpoint, address or path is ever a
 * label: the number of series depends on the program, not on its customers. The only label without a list is `operation`
 * (platform/http/server.ts), whose values come from the route tables.
 */
export const registry = new prometheus.Registry()

type Lists = Record<string, readonly string[]>
type Values<L extends Lists> = { [Name in keyof L]: L[Name][number] }

/** A counter whose series all exist from the start, because computing a rate requires an initial zero. */
export class Counter<const L extends Lists> {
  readonly #counter: prometheus.Counter<string>

  constructor(name: string, help: string, lists: L) {
    this.#counter = new prometheus.Counter<string>({
      name,
      help,
      labelNames: Object.keys(lists),
      registers: [registry],
    })
    for (const labels of combinations(lists)) this.#counter.inc(labels, 0)
  }

  add(labels: Values<L>, by = 1): void {
    this.#counter.inc(labels, by)
  }
}

export class DurationHistogram<const L extends Lists> {
  readonly #histogram: prometheus.Histogram<string>

  constructor(name: string, help: string, lists: L, buckets: number[]) {
    const labelNames = Object.keys(lists)
    this.#histogram = new prometheus.Histogram<string>({
      name,
      help,
      labelNames,
      buckets,
      registers: [registry],
    })
  }

  observe(labels: Values<L>, ms: number): void {
    this.#histogram.observe(labels, ms / 1000)
  }
}

/** A gauge. An undefined value removes the series. */
export class Gauge<const L extends Lists> {
  readonly #gauge: prometheus.Gauge<string>

  constructor(name: string, help: string, lists: L) {
    this.#gauge = new prometheus.Gauge<string>({
      name,
      help,
      labelNames: Object.keys(lists),
      registers: [registry],
    })
    // Without labels, the library exports an initial zero, even in processes that never set the gauge.
    this.#gauge.remove({})
  }

  set(labels: Values<L>, value: number | undefined): void {
    if (value === undefined) this.#gauge.remove(labels)
    else this.#gauge.set(labels, value)
  }

  add(labels: Values<L>, by: number): void {
    this.#gauge.inc(labels, by)
  }

  /** Removes every series. */
  reset(): void {
    this.#gauge.reset()
    this.#gauge.remove({})
  }
}

function combinations(lists: Lists): Record<string, string>[] {
  return Object.entries(lists).reduce<Record<string, string>[]>(
    (known, [name, values]) => known.flatMap((one) => values.map((value) => ({ ...one, [name]: value }))),
    [{}],
  )
}

type Collect = () => void | Promise<void>

const collectors = new Set<Collect>()

/** Calls a function before each scrape, to set gauges. The function must not reject. Returns a function that removes it. */
export function onScrape(collect: Collect): () => void {
  collectors.add(collect)
  return () => void collectors.delete(collect)
}

let hasDefaults = false

/** The longest timer. The library measures event loop utilization ten times per second, which would wake an idle process. */
const neverMs = 2 ** 31 - 1

/** Adds the default process metrics, such as event loop lag, memory and file descriptors. */
export function watchProcess(version: string): void {
  if (hasDefaults) return
  hasDefaults = true
  prometheus.collectDefaultMetrics({ register: registry, eventLoopUtilizationTimeout: neverMs })
  for (const name of ['summary', 'histogram'])
    registry.removeSingleMetric(`nodejs_eventloop_utilization_${name}`)
  new prometheus.Gauge({
    name: 'postern_build_info',
    help: 'Always 1; the labels contain the versions of Postern and Node.js.',
    labelNames: ['version', 'node'],
    registers: [registry],
  }).set({ version, node: process.version }, 1)
}

export async function exposition(): Promise<string> {
  await Promise.all([...collectors].map((collect) => collect()))
  return registry.metrics()
}
