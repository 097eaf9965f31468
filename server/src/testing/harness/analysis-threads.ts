import { BlockList } from 'node:net'
import { AnalysisThreads, type AnalysisThreadsOptions } from '../../core/mail/inbound/analysis-threads.ts'
import type { Reporters } from '../../intake/bounces/reporters.ts'
import { networksOf } from '../../platform/net/net-guard.ts'
import { cleanUp } from './cleanup.ts'

/** Analysis threads for a test file, closed when its tests are done. */
export function testAnalysisThreads(options: Partial<AnalysisThreadsOptions> = {}): AnalysisThreads {
  const analysisThreads = new AnalysisThreads({ dns: { servers: ['127.0.0.1:1'] }, ...options })
  cleanUp(() => analysisThreads.close())
  return analysisThreads
}

export const loopback = networksOf(['127.0.0.0/8'])
export const noNetworks = new BlockList()
export const localReporters: Reporters = { networks: loopback, domains: [] }
