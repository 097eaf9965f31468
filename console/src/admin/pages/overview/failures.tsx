import type { Overview } from '../../../api/operations.gen.ts'
import { Banner } from '../../../components/banner.tsx'
import { ExactTime } from '../../../components/relative-time.tsx'
import { providerNames } from './providers.ts'

/** Each has a banner. */
export const countFailures = ({ processes, cells, queue }: Overview): number =>
  processes.filter(({ is_alive }) => !is_alive).length +
  (processes.some(({ is_alive }) => is_alive) ? 0 : 1) +
  cells.filter(({ is_reachable }) => !is_reachable).length +
  queue.holds.length

/** What an operator must repair: processes that stopped, databases that do not answer, and mail that is held. */
export function Failures({ overview: { processes, cells, queue } }: { overview: Overview }) {
  const dead = processes.filter(({ is_alive }) => !is_alive)
  return (
    <>
      {processes.length === dead.length && (
        <Banner>
          <strong>No process reports that it is running.</strong> Processes report every 15 seconds.
        </Banner>
      )}
      {dead.map(({ id, kind, host, seen_at }) => (
        <Banner key={id}>
          <strong>
            The process “{kind}” on {host} does not respond.
          </strong>{' '}
          Last seen on <ExactTime at={seen_at} />.
        </Banner>
      ))}
      {cells.flatMap(({ name, is_reachable }) =>
        is_reachable ? (
          []
        ) : (
          <Banner key={name}>
            <strong>The database of the cell “{name}” does not respond.</strong> Its mail is not part of the
            figures below.
          </Banner>
        ),
      )}
      {queue.holds.map(({ scope, held_at }) => (
        <Banner key={scope}>
          <strong>
            {scope === 'all' ? 'All mail is held' : `Mail over ${providerNames[scope]} is held`}
          </strong>{' '}
          by an operator since <ExactTime at={held_at} />. Queued mail fails after 7 days.
        </Banner>
      ))}
    </>
  )
}
