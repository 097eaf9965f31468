import { BlockList } from 'node:net'
import { Examiners, type ExaminersOptions } from '../../core/mail/inbound/analysis-threads.ts'
import type { Reporters } from '../../intake/bounces/reporters.ts'
import { networksOf } from '../../platform/net/net-guard.ts'
import { cleanUp } from './cleanup.ts'

/** Threads for a test, and whom the intake of a test trusts: everybody on this machine. */
export function testExaminers(options: Partial<ExaminersOptions> = {}): Examiners {
  const examiners = new Examiners({ dns: { servers: ['127.0.0.1:1'] }, ...options })
  cleanUp(() => examiners.close())
  return examiners
}

export const loopback = networksOf(['127.0.0.0/8'])
export const noNetworks = new BlockList()
export const localReporters: Reporters = { networks: loopback, domains: [] }
