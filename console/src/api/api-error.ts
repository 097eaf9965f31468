/** Thrown when the server rejects a request or does not respond. `message` is shown to the user. */
export class ApiError extends Error {
  /** 0 if there was no response. */
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }

  /** Whether the request is known to have changed nothing. */
  get isCertain(): boolean {
    return this.code === 'unreachable' || (this.status >= 400 && this.status < 500)
  }
}

export async function apiErrorOf(response: Response): Promise<ApiError> {
  const { error, message } = await response.json().catch(() => ({}))
  return new ApiError(
    response.status,
    error ?? 'unknown',
    message ?? `The server returned status ${response.status} and no error message.`,
  )
}

const defaultTimeoutMs = 30_000

interface TimeoutOptions {
  signal?: AbortSignal | undefined
  timeoutMs?: number | undefined
  /** Whether the request is a mutation: if there is no response, it is unknown whether the change was made. */
  isWrite?: boolean
}

/** Sends a request with a timeout. If the caller aborts through `signal`, the abort error is rethrown. */
export async function withTimeout<T>(
  request: (signal: AbortSignal) => Promise<T>,
  { signal, timeoutMs = defaultTimeoutMs, isWrite = false }: TimeoutOptions = {},
): Promise<T> {
  const timeout = new AbortController()
  const timer = setTimeout(() => timeout.abort(), timeoutMs)
  try {
    return await request(signal ? AbortSignal.any([signal, timeout.signal]) : timeout.signal)
  } catch (error) {
    if (signal?.aborted || error instanceof ApiError) throw error
    throw isWrite
      ? new ApiError(
          0,
          'no_response',
          'The server did not respond. Check whether the change was made before you try again.',
        )
      : new ApiError(0, 'unreachable', 'The server cannot be reached. Check your connection and try again.')
  } finally {
    clearTimeout(timer)
  }
}
