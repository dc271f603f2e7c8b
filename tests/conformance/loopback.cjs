// Binds the suite's mock servers to the loopback interface only: it starts them without saying where, and reads their
// port at once, so that the host cannot simply be given to `listen`, which would look it up first.
//
//     node --require ./loopback.cjs …

const net = require('node:net');
const bind = net.Server.prototype._listen2;

net.Server.prototype._listen2 = function (address, port, addressType, backlog, fd, ...rest) {
    const anywhere = !address && typeof fd !== 'number' && port >= 0;
    const [where, family] = anywhere ? ['127.0.0.1', 4] : [address, addressType];
    return bind.call(this, where, port, family, backlog, fd, ...rest);
};
