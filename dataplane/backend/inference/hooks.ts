import type { Registry } from '../../observe/telemetry/metrics/registry.ts'
import type { DestinationHooks } from '../../net/upstream/hooks.ts'
import { pickEndpoints, type EndpointPicker } from './picker.ts'
import { reportResponse } from './report.ts'

/** The endpoint picker chooses the endpoints of requests to a pool, and receives their responses. */
export const pickerHooks = (picker: EndpointPicker, registry: Registry): DestinationHooks => ({
  async choose(exchange, pool, maxBufferBytes) {
    const picked = await pickEndpoints(exchange, pool, picker, { maxBufferBytes, registry })
    return (
      picked && {
        labels: picked.labels,
        by: 'the endpoint picker',
        abandon: (error) => picked.session?.abandon(error),
        report: () => reportResponse(exchange, picked),
      }
    )
  },
})
