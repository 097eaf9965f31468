import { useLocalStorage } from '@mantine/hooks'
import { createContext, type ReactNode, useContext } from 'react'
import type { Zone } from './zone.ts'

const ZoneContext = createContext<[zone: Zone, setZone: (zone: Zone) => void]>(['local', () => undefined])

/** The zone in which times are shown, kept in the browser and shared by its tabs. */
export function ZoneProvider({ children }: { children: ReactNode }) {
  const [zone, setZone] = useLocalStorage<Zone>({
    key: 'postern-time-zone',
    defaultValue: 'local',
    getInitialValueInEffect: false,
    serialize: (value) => value,
    deserialize: (value) => (value === 'utc' ? 'utc' : 'local'),
  })
  return <ZoneContext value={[zone, setZone]}>{children}</ZoneContext>
}

export const useZone = (): Zone => useContext(ZoneContext)[0]

export const useZoneSetting = () => useContext(ZoneContext)
