import { type Attack, repeat } from './attack.ts'
import { Cap } from './cap.ts'
import { capValue } from './stage.ts'

/** M6: an unlimited number of projects, each with its own quotas. The owner is the run's user. */
export function projects(): Attack {
  let cap: Cap
  let bearer = ''
  let phases = 0
  return {
    ...{ id: 'M6', name: 'projects' },
    title: `one more project than ${capValue} of one owner, ${requestsAtOnce} requests at once`,
    async prepare(attacker) {
      const { stage } = attacker
      bearer = await stage.postern.token()
      cap = new Cap(attacker, {
        name: 'max_projects_per_owner',
        value: capValue,
        create: () => attacker.ask('/projects', { bearer, body: { name: 'One more' } }),
        count: () => stage.count(`control.projects where name = 'One more'`),
      })
      await cap.fill()
    },
    async run(attacker, over) {
      await repeat(requestsAtOnce, over, () =>
        attacker.ask('/projects', { bearer, body: { name: 'One more' } }),
      )
    },
    async check(attacker) {
      attacker.requireAnswer('422 limit_exceeded')
      await cap.requireRefusal()
      // A token is valid for ten minutes.
      if (++phases % 3 === 0) bearer = await attacker.stage.postern.token()
    },
  }
}

const requestsAtOnce = 4
