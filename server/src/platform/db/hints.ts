import { randomUUID } from 'node:crypto'
import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { Gauge } from '../telemetry/metrics.ts'
import { type HintName, hintChannel, hintCount, hintNames } from './hint-sender.ts'

// Receives hints (hint-sender.ts), so that an idle worker polls rarely and still starts new work immediately.
//
// Hints can be lost, delayed or duplicated, and nothing depends on them: a loop polls rarely while `isListening`, and often
// otherwise. Every change of `isListening` wakes all loops: after a reconnection, they find the rows whose hints were
// lost; after a disconnection, they poll often again.
//
// The listener sends itself an echo through another connection, before it relies on its own connection and then
// periodically. This detects a connection that is half open, and a connection pooler that does not deliver notifications.

const listening = new Gauge(
  'postern_hints_listening',
  '1 if this worker receives hints; 0 if it does not and polls more often.',
  {},
)

export interface HintListenerOptions {
  /** Returns an open connection over this stream. */
  connect: (stream: Socket) => Promise<pg.Client>
  /** Sends a notification through another connection. */
  notify: (payload: string) => Promise<unknown>
  onError: (error: unknown, what: string) => void
  /** Shorter in tests. */
  timings?: Partial<typeof usualTimings>
}

const usualTimings = {
  echoEveryMs: 20_000,
  echoTimeoutMs: 10_000,
  firstBackoffMs: 1_000,
  maxBackoffMs: 30_000,
}
const endMs = 1_000

/** Connects when the first waiter is created and disconnects when the last one is closed. */
export class HintListener {
  static readonly #running = new Set<HintListener>()

  readonly #options: HintListenerOptions
  readonly #timings: typeof usualTimings
  readonly #waiters = new Map<Waiter, HintName>()
  #isListening = false
  #stopping: AbortController | undefined
  #run: Promise<void> = Promise.resolve()
  #echo: { payload: string; received: () => void } | undefined

  constructor(options: HintListenerOptions) {
    this.#options = options
    this.#timings = { ...usualTimings, ...options.timings }
  }

  get isListening(): boolean {
    return this.#isListening
  }

  waiter(name: HintName): Waiter {
    const waiter = new Waiter({
      isListening: () => this.#isListening,
      close: () => this.#remove(waiter),
    })
    this.#waiters.set(waiter, name)
    if (!this.#stopping) {
      const stopping = new AbortController()
      this.#stopping = stopping
      this.#run = this.#run.then(() => this.#keepListening(stopping.signal))
    }
    return waiter
  }

  async close(): Promise<void> {
    this.#waiters.clear()
    this.#stop()
    await this.#run
  }

  #remove(waiter: Waiter): void {
    this.#waiters.delete(waiter)
    if (this.#waiters.size === 0) this.#stop()
  }

  #stop(): void {
    this.#stopping?.abort()
    this.#stopping = undefined
  }

  async #keepListening(signal: AbortSignal): Promise<void> {
    HintListener.#running.add(this)
    this.#setListening(false)
    let backoffMs = this.#timings.firstBackoffMs
    let isReported = false
    while (!signal.aborted) {
      try {
        await this.#listen(signal)
      } catch (error) {
        if (this.#isListening) {
          backoffMs = this.#timings.firstBackoffMs
          isReported = false
        }
        // Logged once, however long the database is unavailable.
        if (!isReported && !signal.aborted)
          this.#options.onError(error, 'hints are not received; polling more often until they are')
        isReported = true
      }
      this.#setListening(false)
      await sleep(backoffMs, undefined, { signal }).catch(() => {})
      backoffMs = Math.min(this.#timings.maxBackoffMs, backoffMs * 2)
    }
    HintListener.#running.delete(this)
    HintListener.#setGauge()
  }

  /** Throws when the connection is lost or the signal is aborted. */
  async #listen(signal: AbortSignal): Promise<never> {
    const stream = new Socket()
    const lost = Promise.withResolvers<never>()
    lost.promise.catch(() => {})
    stream.on('error', lost.reject)
    stream.on('close', () => lost.reject(new Error('the connection was closed')))
    const stop = () => lost.reject(new Error('stopped'))
    signal.addEventListener('abort', stop)
    const orLost = <T>(step: Promise<T>): Promise<T> => Promise.race([step, lost.promise])
    let client: pg.Client | undefined
    try {
      client = await orLost(this.#options.connect(stream))
      client.on('notification', ({ payload }) => this.#receive(payload))
      await orLost(client.query(`listen ${hintChannel}`))
      for (;;) {
        await orLost(this.#awaitEcho())
        this.#setListening(true)
        await orLost(sleep(this.#timings.echoEveryMs, undefined, { ref: false }))
      }
    } finally {
      signal.removeEventListener('abort', stop)
      if (client) await Promise.race([client.end().catch(() => {}), sleep(endMs, undefined, { ref: false })])
      stream.destroy()
    }
  }

  async #awaitEcho(): Promise<void> {
    const { promise: echo, resolve: received } = Promise.withResolvers<void>()
    const payload = `echo ${randomUUID()}`
    this.#echo = { payload, received }
    const timeout = new AbortController()
    const late = sleep(this.#timings.echoTimeoutMs, undefined, { signal: timeout.signal, ref: false }).then(
      () => {
        throw new Error(
          'a notification sent by this process did not arrive: a connection pooler may have dropped it',
        )
      },
    )
    try {
      await Promise.race([Promise.all([this.#options.notify(payload), echo]), late])
    } finally {
      timeout.abort()
      late.catch(() => {})
      this.#echo = undefined
    }
  }

  #receive(payload = ''): void {
    if (payload === this.#echo?.payload) this.#echo.received()
    const hint = hintNames.find((name) => name === payload)
    if (hint === undefined) return
    hintCount.add({ name: hint, outcome: 'received' })
    for (const [waiter, name] of this.#waiters) if (name === hint) waiter.wake()
  }

  #setListening(isListening: boolean): void {
    const isChange = this.#isListening !== isListening
    this.#isListening = isListening
    HintListener.#setGauge()
    if (isChange) for (const waiter of this.#waiters.keys()) waiter.wake()
  }

  static #setGauge(): void {
    const running = [...HintListener.#running]
    listening.set({}, running.length === 0 ? undefined : Number(running.every((one) => one.isListening)))
  }
}

/** A pause that ends early when a hint arrives. Without a listener, it is only a pause. */
export class Waiter {
  readonly #source: { isListening(): boolean; close(): void } | undefined
  #isWoken = false
  #end: (() => void) | undefined

  constructor(source?: { isListening(): boolean; close(): void }) {
    this.#source = source
  }

  /** Whether hints are received. While they are not, poll often. */
  get isListening(): boolean {
    return this.#source?.isListening() ?? false
  }

  wake(): void {
    this.#isWoken = true
    this.#end?.()
  }

  /**
   * Resolves after `ms`, after a wake, or when the signal is aborted. Resolves immediately if there was a wake since the
   * last wait. Returns true if there was a wake. Only one call at a time.
   */
  async wait(ms: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#isWoken && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#end = resolve
      const timer = setTimeout(resolve, ms)
      signal.addEventListener('abort', this.#end)
      await promise
      clearTimeout(timer)
      signal.removeEventListener('abort', this.#end)
      this.#end = undefined
    }
    const isWoken = this.#isWoken
    this.#isWoken = false
    return isWoken
  }

  close(): void {
    this.#source?.close()
  }
}
