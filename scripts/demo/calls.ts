import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

export type Call = (method: string, path: string, body: object) => Promise<{ id: number }>

/**
 * Retries while the server restarts because a file has changed. An interrupted run can be repeated: objects that
 * already exist are not created again.
 */
export function caller(url: string, token: string): Call {
  return async (method, path, body) => {
    const request = {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'idempotency-key': `demo-${createHash('sha256')
          .update(JSON.stringify([path, body]))
          .digest('hex')}`,
      },
      body: JSON.stringify(body),
    }
    const response = await patiently(() => fetch(`${url}/v1/admin${path}`, request))
    const text = await response.text()
    const answer = text === '' ? {} : JSON.parse(text)
    if (!response.ok && answer.error !== 'secret_already_revealed') {
      throw new Error(`${method} ${path} was refused: ${text}`)
    }
    return answer
  }
}

export async function patiently(attempt: () => Promise<Response>): Promise<Response> {
  for (let tried = 1; ; tried++) {
    try {
      return await attempt()
    } catch (error) {
      if (tried === 50) throw error
      await sleep(200)
    }
  }
}
