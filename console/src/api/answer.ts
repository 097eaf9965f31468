/** The server said no. `message` is its sentence for a person. */
export class Refusal extends Error {
  /** 0 where there was no answer. */
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }

  /** Whether it is certain that nothing was done. */
  get isCertain(): boolean {
    return this.status >= 400 && this.status < 500
  }
}

export async function refusalOf(response: Response): Promise<Refusal> {
  const { error, message } = await response.json().catch(() => ({}))
  return new Refusal(
    response.status,
    error ?? 'unknown',
    message ?? `The server answered with ${response.status} and no explanation.`,
  )
}

const usualPatienceMs = 30_000

/** Asks, and does not wait for ever. Whoever gives up by `signal` gets their own error. */
export async function patiently<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  {
    signal,
    patienceMs = usualPatienceMs,
  }: { signal?: AbortSignal | undefined; patienceMs?: number | undefined } = {},
): Promise<T> {
  const patience = new AbortController()
  const timer = setTimeout(() => patience.abort(), patienceMs)
  try {
    return await ask(signal ? AbortSignal.any([signal, patience.signal]) : patience.signal)
  } catch (error) {
    if (signal?.aborted || error instanceof Refusal) throw error
    throw new Refusal(
      0,
      'unreachable',
      'The server cannot be reached, or takes too long. Look whether it was done before you try again.',
    )
  } finally {
    clearTimeout(timer)
  }
}
