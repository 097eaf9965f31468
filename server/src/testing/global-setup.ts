import { makeTemplate } from './database.ts'
import { type Cluster, startCluster } from './postgres.ts'

let cluster: Cluster | undefined

export async function globalSetup(): Promise<void> {
  cluster = await startCluster()
  await makeTemplate(cluster.url)
}

export async function globalTeardown(): Promise<void> {
  await cluster?.stop()
}
