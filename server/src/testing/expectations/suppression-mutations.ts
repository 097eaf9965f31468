import type { fixtures } from '../fixtures/fixtures.ts'
import type { TestDatabase } from '../harness/database.ts'
import type { Scenario } from './scenario.ts'

/** The scenarios of mutations.ts for suppressions, of a project and for all projects. */
type Fixtures = ReturnType<typeof fixtures>
type Scenarios = Record<string, Scenario[]>

export const suppressionScenarios = (make: Fixtures, database: TestDatabase): Scenarios => ({
  ...ofProject(make, database),
  ...ofAllProjects(database),
})

function ofProject(make: Fixtures, database: TestDatabase): Scenarios {
  /** The id of a project in which an address is suppressed. */
  const withSuppression = async (): Promise<number> => {
    const { id } = await make.makeProject()
    await database.query(
      `insert into mail.suppressions (project_id, address, reason) values ($1, 'ada@example.net', 'complaint')`,
      [id],
    )
    return id
  }
  return {
    'suppressions.create': [
      {
        what: 'suppresses an address',
        async prepare() {
          const { id } = await make.makeProject()
          return { path: `/projects/${id}/suppressions`, body: { address: 'Ada@example.net' } }
        },
      },
      {
        what: 'changes nothing',
        changesNothing: true,
        async prepare() {
          const id = await withSuppression()
          return { path: `/projects/${id}/suppressions`, body: { address: 'Ada@example.net' } }
        },
      },
    ],
    'suppressions.import': [
      {
        what: 'suppresses two addresses',
        async prepare() {
          const id = await withSuppression()
          const csv = 'ada@example.net\ngrace@example.net,bounce\nno address\nalan@example.net'
          return { path: `/projects/${id}/suppressions/import`, body: { csv } }
        },
      },
      {
        what: 'changes nothing',
        changesNothing: true,
        async prepare() {
          const id = await withSuppression()
          return { path: `/projects/${id}/suppressions/import`, body: { csv: 'ada@example.net' } }
        },
      },
    ],
    'suppressions.delete': [
      {
        what: 'lets a project send to a recipient who complained',
        async prepare() {
          const id = await withSuppression()
          return { path: `/projects/${id}/suppressions/ada@example.net`, body: {} }
        },
      },
    ],
  }
}

let made = 0

function ofAllProjects(database: TestDatabase): Scenarios {
  const newAddress = () => `scenario${++made}@example.net`
  const listed = async (): Promise<string> => {
    const address = newAddress()
    await database.query(
      `insert into control.platform_suppressions (address, reason) values ($1, 'Needed')`,
      [address],
    )
    return address
  }
  return {
    'platform-suppressions.create': [
      {
        what: 'suppresses an address',
        prepare: async () => ({ path: '/suppressions', body: { address: newAddress() } }),
      },
      {
        what: 'changes nothing',
        changesNothing: true,
        prepare: async () => ({ path: '/suppressions', body: { address: await listed() } }),
      },
    ],
    'platform-suppressions.import': [
      {
        what: 'suppresses two addresses',
        prepare: async () => ({
          path: '/suppressions/import',
          body: { csv: `${newAddress()}\nno address\n${newAddress()},Wrote to us\n${await listed()}` },
        }),
      },
      {
        what: 'changes nothing',
        changesNothing: true,
        prepare: async () => ({ path: '/suppressions/import', body: { csv: await listed() } }),
      },
    ],
    'platform-suppressions.delete': [
      {
        what: 'deletes an address',
        prepare: async () => ({ path: `/suppressions/${await listed()}`, body: {} }),
      },
    ],
  }
}
