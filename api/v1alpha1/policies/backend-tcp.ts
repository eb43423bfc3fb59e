import { object, ref, type Definitions } from '../../schema.ts'
import { duration } from '../shared.ts'

export const backendTcpDefinitions: Definitions = {
  BackendTCP: object('TCP settings of connections to the backend.', {
    keepalive: ref('Keepalive'),
    connectTimeout: duration('Timeout for establishing a connection; then the attempt fails with 504. Default: 10s.', 100),
  }),
}
