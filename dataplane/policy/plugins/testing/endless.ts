// Ends a worker thread whose loop is optimized and allocates arrays, and prints why it ended.
import { startWorker } from '../worker-host.ts'

const code = `
function allocate(count) {
  for (let n = 0; n < count; n++) new Array(1000).fill(0)
}
allocate(1_000_000)
console.info('optimized')
allocate(Infinity)`
const host = startWorker(
  { data: { code, file: 'index.ts', config: undefined, secrets: {} }, memoryMb: 64 },
  {
    // A thread that is not in the loop yet can be ended in any case.
    onMessage: () => setTimeout(() => host.end(), 500),
    onEnd: (reason) => process.stdout.write(`${reason}\n`),
  },
)
// The thread does not keep the process alive.
process.stdin.resume()
