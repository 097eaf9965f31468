import { Gauge } from '../telemetry/metrics.ts'
import { dbRoles } from './roles.ts'

/** The gauges of the connection pools. db.ts sets them when metrics are read. */
export const poolConnections = new Gauge(
  'postern_database_connections',
  'Database connections in the pool, by role and state.',
  {
    role: dbRoles,
    state: ['idle', 'busy'],
  },
)
export const poolWaiting = new Gauge(
  'postern_database_waiting',
  'Requests waiting for a database connection, by role.',
  {
    role: dbRoles,
  },
)
export const poolSize = new Gauge(
  'postern_database_pool_size',
  'Maximum number of connections in the pool, by role.',
  { role: dbRoles },
)
