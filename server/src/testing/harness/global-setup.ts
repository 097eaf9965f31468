import { type Cluster, startCluster } from '../peers/postgres.ts'
import { makeTemplates } from './database.ts'
import { controlSettings, isSplit } from './split-databases.ts'

const clusters: Cluster[] = []

export async function globalSetup(): Promise<void> {
  const cluster = await startCluster(isSplit ? { besides: controlSettings } : {})
  clusters.push(cluster)
  if (isSplit) clusters.push(await startCluster())
  await makeTemplates(cluster.url, clusters[1]?.url)
}

export async function globalTeardown(): Promise<void> {
  for (const cluster of clusters) await cluster.stop()
}
