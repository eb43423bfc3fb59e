import { startServices } from '../harness/example/services.ts'

const { port } = await startServices({ name: 'services' })
console.log(`listening ${port}`)
