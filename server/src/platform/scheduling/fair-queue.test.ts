import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FairQueue, type Whose } from './fair-queue.ts'

interface Job {
  whose: Whose
  name: string
}

const job = (network: string, addressee: string, no = 0): Job => ({
  whose: { network, addressee },
  name: `${network}>${addressee}${no}`,
})

/** The names of all jobs in the order in which the queue returns them. */
function drain(queue: FairQueue<Job>): string[] {
  const names: string[] = []
  for (let next = queue.take(); next; next = queue.take()) {
    names.push(next.name)
    queue.end(next)
  }
  return names
}

function queueOf(jobs: readonly Job[], atOnce = 10): FairQueue<Job> {
  const queue = new FairQueue<Job>({ atOnce })
  for (const one of jobs) queue.add(one)
  return queue
}

describe('a fair queue', () => {
  test('alternates between networks, even if one has jobs for many addressees', () => {
    const flood = Array.from({ length: 5 }, (_, no) => job('a', `p${no}`))
    assert.equal(drain(queueOf([...flood, job('b', 'q')])).indexOf('b>q0'), 1)
  })

  test('alternates between addressees, even if one has jobs from many networks', () => {
    const flood = Array.from({ length: 5 }, (_, no) => job(`a${no}`, 'p'))
    assert.equal(drain(queueOf([...flood, job('b', 'q')])).indexOf('b>q0'), 1)
  })

  test('alternates between networks with jobs for the same addressee', () => {
    const flood = Array.from({ length: 3 }, (_, no) => job('a', 'p', no))
    assert.deepEqual(drain(queueOf([...flood, job('b', 'p')])), ['a>p0', 'b>p0', 'a>p1', 'a>p2'])
  })

  test('limits the concurrent jobs per network and per addressee', () => {
    const queue = queueOf([job('a', 'p', 1), job('a', 'q'), job('b', 'p'), job('b', 'q')], 1)
    const first = queue.take()
    assert.equal(first?.name, 'a>p1')
    assert.equal(queue.take()?.name, 'b>q0')
    assert.equal(queue.take(), undefined)
    queue.end(first as Job)
    assert.equal(queue.take(), undefined, 'network b and addressee q are at their limit')
  })

  test('removes waiting jobs', () => {
    const [one, other] = [job('a', 'p', 1), job('a', 'p', 2)]
    const queue = queueOf([one, other])
    queue.remove(one)
    queue.remove(one)
    assert.deepEqual(
      queue.removeAll().map(({ name }) => name),
      ['a>p2'],
    )
    assert.equal(queue.take(), undefined)
  })
})
