import assert from 'node:assert/strict'
import { type fixtures, planConfiguration, policyConfiguration } from '../fixtures/fixtures.ts'
import type { Client } from '../harness/client.ts'
import type { TestDatabase } from '../harness/database.ts'
import type { Scenario } from './scenario.ts'

/** The scenarios of mutations.ts for resources outside projects: plans, policies, bulk actions and users. */
type Fixtures = ReturnType<typeof fixtures>
type Scenarios = Record<string, Scenario[]>

export function planScenarios(make: Fixtures): Scenarios {
  const edit = (body: Record<string, unknown>) => async () => ({
    path: `/plans/${(await make.makePlan()).id}`,
    body,
  })
  return {
    'plans.create': [
      {
        what: 'creates a plan',
        prepare: async () => ({ path: '/plans', body: { ...planConfiguration, price: 149.5 } }),
      },
      {
        what: 'creates an inactive plan that allows nothing',
        prepare: async () => ({
          path: '/plans',
          body: { ...planConfiguration, max_users: 0, max_mails_per_month: 0, is_active: false },
        }),
      },
    ],
    'plans.edit': [
      { what: 'changes limits and price', prepare: edit({ max_domains: 0, max_users: 1, price: 0.07 }) },
      {
        what: 'deactivates a plan in use',
        async prepare() {
          const { plan_id } = await make.makeProject()
          return { path: `/plans/${plan_id}`, body: { is_active: false } }
        },
      },
      {
        what: 'changes nothing',
        changesNothing: true,
        prepare: edit({ price: planConfiguration.price, is_active: true }),
      },
    ],
  }
}

/** Undoes an edit. */
export function auditScenarios(make: Fixtures, admin: Client): Scenarios {
  const undo = (noun: 'plan' | 'project', body: Record<string, unknown>) => async () => {
    const { id } = await (noun === 'plan' ? make.makePlan() : make.makeProject())
    const { status, text } = await admin.patch(`/${noun}s/${id}`, body)
    assert.equal(status, 200, text)
    const { data } = (await admin.get(`/audit?resource=${noun}:${id}&limit=1`)).body
    return { path: `/audit/${data[0].id}/undo`, body: {} }
  }
  return {
    'audit.undo': [
      { what: 'restores the price of a plan', prepare: undo('plan', { price: 0.07 }) },
      { what: 'unlocks a project', prepare: undo('project', { is_locked: true, reason: 'Needed' }) },
    ],
  }
}

let made = 0

export function policyScenarios(make: Fixtures): Scenarios {
  const create = (changes: Record<string, unknown>) => async () => ({
    path: '/policies',
    body: { ...policyConfiguration, name: `Scenario ${++made}`, ...changes },
  })
  const edit = (body: Record<string, unknown>) => async () => ({
    path: `/policies/${(await make.makePolicy()).id}`,
    body,
  })
  const pace = { kind: 'pace', pace_per_hour: 500, duration_minutes: null, public_note: null }
  return {
    'policies.create': [
      { what: 'creates a policy in shadow', prepare: create({}) },
      {
        what: 'creates a policy for some projects and enforces it',
        async prepare() {
          const plan = await make.makePlan()
          const applies_to = { plan_ids: [plan.id], younger_than_days: 7, except_project_ids: [3, 1] }
          return create({ mode: 'enforce', intervention: pace, applies_to })()
        },
      },
    ],
    'policies.edit': [
      { what: 'enforces it', prepare: edit({ mode: 'enforce' }) },
      {
        what: 'changes the threshold and the intervention',
        prepare: edit({ threshold: 0.5, intervention: pace }),
      },
      {
        what: 'changes nothing',
        changesNothing: true,
        prepare: edit({ mode: 'shadow', applies_to: policyConfiguration.applies_to }),
      },
    ],
  }
}

export function bulkScenarios(make: Fixtures, database: TestDatabase): Scenarios {
  const there = async (status: 'running' | 'stopped', below: string) => {
    const { id } = await make.makeBulk((await make.makeProject()).id, { status })
    return { path: `/bulk/${id}${below}`, body: {} }
  }
  return {
    'bulk.create': [
      {
        what: 'locks two projects',
        async prepare() {
          const ids = [(await make.makeProject()).id, (await make.makeProject()).id]
          // An administrator can have one that is running.
          await database.query(
            'update control.bulk_actions set finished_at = now() where stopped_at is null and finished_at is null',
          )
          return { path: '/bulk', body: { operation: 'projects.edit', ids, body: { is_locked: true } } }
        },
      },
    ],
    'bulk.stop': [
      { what: 'stops a bulk action', prepare: () => there('running', '/stop') },
      { what: 'changes nothing', changesNothing: true, prepare: () => there('stopped', '/stop') },
    ],
    'bulk.resume': [
      { what: 'resumes a bulk action', prepare: () => there('stopped', '/resume') },
      { what: 'changes nothing', changesNothing: true, prepare: () => there('running', '/resume') },
    ],
  }
}

export function userScenarios(make: Fixtures, database: TestDatabase): Scenarios {
  const edit = (role: 'user' | 'admin', body: Record<string, unknown>) => async () => {
    const { id } = await make.makeUser({ role })
    await database.query(
      `insert into control.sessions (user_id, token, expires_at)
       select $1, gen_random_uuid()::text, postern.now() + interval '1 hour' from generate_series(1, 2)`,
      [id],
    )
    return { path: `/users/${id}`, body }
  }
  return {
    'users.edit': [
      { what: 'grants the admin role', prepare: edit('user', { role: 'admin' }) },
      { what: 'limits the rights', prepare: edit('admin', { rights: 'support' }) },
      { what: 'revokes the admin role', prepare: edit('admin', { role: 'user' }) },
      { what: 'disables the user', prepare: edit('user', { is_active: false }) },
      { what: 'revokes the sessions', prepare: edit('user', { end_sessions: true }) },
      {
        what: 'changes nothing',
        changesNothing: true,
        prepare: edit('user', { role: 'user', is_active: true, end_sessions: false }),
      },
    ],
  }
}
